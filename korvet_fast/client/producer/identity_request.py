"""The request for a producer id: one request at a time, while partitions wait for one."""

from collections.abc import Mapping
from typing import Any

from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.producer_identity import ProducerIdentity
from korvet_fast.client.producer.retry_handler import Backoff


class IdentityRequest:
    """`due` says when to ask."""

    def __init__(self, identity: ProducerIdentity, backoff: Backoff) -> None:
        self._identity = identity
        self._backoff = backoff
        self._in_flight = False
        self._waiters: dict[PartitionProducer, None] = {}

    def want(self, partition: PartitionProducer) -> None:
        """The partition cannot send before there is a producer id."""
        self._waiters[partition] = None

    def due(self) -> float | None:
        """The time when the next request may be sent; None: there is no reason, or one is on its way."""
        needed = self._waiters and self._identity.wanted and not self._in_flight
        return self._backoff.until if needed else None

    def sent(self) -> None:
        """A request is on its way."""
        self._in_flight = True

    def received(self, answer: Mapping[str, Any], now: float) -> list[PartitionProducer]:
        """An answer came: the partitions that waited for it, if it gives an id."""
        if answer["error_code"] or answer["producer_id"] < 0 or answer["producer_epoch"] < 0:
            self.failed(now)
            return []
        self._in_flight = False
        self._backoff.succeed()
        self._identity.give(answer["producer_id"], answer["producer_epoch"])
        waiters = list(self._waiters)
        self._waiters.clear()
        return waiters

    def failed(self, now: float) -> list[PartitionProducer]:
        """No answer came, or an error: the partitions that wait on."""
        self._in_flight = False
        self._backoff.fail(now)
        return list(self._waiters)
