"""Offsets of a partition whose leader moves while a client asks."""

from collections.abc import Awaitable, Callable

import pytest

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import find_offset
from korvet_fast.client.protocol.errors import BrokerError
from korvet_fast.endpoint import Address
from korvet_fast.types import LATEST
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS
from scripted_broker import NODES, SPOKEN, ask, frame

LISTS_OFFSETS = {"api_key": LIST_OFFSETS.key, "min_version": 1, "max_version": 7}


class Mover:
    """Answers ListOffsets with these codes, one after the other, and then with offset 7. `asked`: for metadata."""

    def __init__(self, *codes: str) -> None:
        self.asked = 0
        self._codes = [CODES[code] for code in codes]
        self._own: Address

    def work(self, find: Callable[[Cluster], Awaitable[int]]) -> int:
        async def connect(own: Address) -> int:
            self._own = own
            async with Cluster([own]) as cluster:
                return await find(cluster)

        found: int = ask(self._answer, connect)
        return found

    def _answer(self, key: int, version: int, correlation: int) -> bytes:
        if key == API_VERSIONS.key:
            return frame(key, version, correlation, {"error_code": 0, "api_keys": [*SPOKEN, LISTS_OFFSETS]})
        if key == METADATA.key:
            self.asked += 1
            node = {"node_id": 1, "host": self._own.host, "port": self._own.port}
            partition = {"partition_index": 0, "leader_id": 1, "leader_epoch": self.asked}
            topic = {"name": "orders", "topic_id": bytes(range(16)), "partitions": [partition]}
            return frame(key, version, correlation, NODES | {"brokers": [node], "topics": [topic]})
        code = self._codes.pop(0) if self._codes else 0
        row = {"partition_index": 0, "error_code": code, "offset": -1 if code else 7}
        return frame(key, version, correlation, {"topics": [{"name": "orders", "partitions": [row]}]})


def find_end(cluster: Cluster) -> Awaitable[int]:
    return find_offset(cluster, "orders", 0, LATEST)


def test_a_leader_that_has_moved_is_looked_for_again() -> None:
    mover = Mover("NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER")
    assert mover.work(find_end) == 7
    assert mover.asked == 3


def test_other_errors_are_told_at_once() -> None:
    mover = Mover("TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(BrokerError, match="offsets of partition 0 of topic 'orders'"):
        mover.work(find_end)
    assert mover.asked == 1
