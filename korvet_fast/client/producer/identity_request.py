"""The request for a producer id: one request at a time, while partitions wait for one."""

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.producer_identity import ProducerIdentity
from korvet_fast.client.protocol.errors import ClientError, is_fatal


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

    def received(self, producer_id: int, epoch: int) -> list[PartitionProducer]:
        """A broker gave an id and an epoch: returns the partitions that waited for them."""
        self._in_flight = False
        self._backoff.succeed()
        self._identity.give(producer_id, epoch)
        waiters = list(self._waiters)
        self._waiters.clear()
        return waiters

    def failed(self, error: ClientError, now: float) -> None:
        """No broker gave an id. Partitions whose messages have ended wait for none any more."""
        for partition in self._waiters:
            partition.last_error = error
            if is_fatal(error):
                partition.refuse(error, now)
        self._waiters = {partition: None for partition in self._waiters if not partition.idle}
        self._in_flight = False
        self._backoff.fail(now)
