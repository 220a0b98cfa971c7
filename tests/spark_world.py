"""Topics in memory behind what the Spark source knows of a cluster: it is tested without broker and Spark."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from batches import NOW, make_batch
from korvet_fast import _native
from korvet_fast.client.protocol.errors import broker_error
from korvet_fast.endpoint import Address
from korvet_fast.spark import fetcher, reader, stream
from korvet_fast.spark.options import Options, Use, parse
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS

ADDRESS = "127.0.0.1:9"
OUT_OF_RANGE, UNKNOWN, NOT_LEADER = 1, 3, 6
LARGEST = (1 << 63) - 1


@dataclass
class Log:
    """One partition. Below `start` nothing is; from `removed` on offsets may be asked for."""

    start: int = 0
    end: int = 0
    removed: int = 0
    records: dict[int, int] = field(default_factory=dict)  # offset -> time
    data: bytearray = field(default_factory=bytearray)

    def put(self, values: Sequence[bytes], at: int | None = None, time: int = NOW, compression: int = 0) -> None:
        """One batch, at the end or at an offset beyond it."""
        base = self.end if at is None else at
        times = [time + number for number in range(len(values))]
        self.data += make_batch(values, times=times, base_offset=base, compression=compression)
        self.records |= {base + number: time for number, time in enumerate(times)}
        self.end = base + len(values)

    def trim(self, offset: int) -> None:
        self.start = self.removed = offset
        self.records = {at: time for at, time in self.records.items() if at >= offset}

    def read(self, offset: int, most: int) -> bytes:
        first, end, _ = _native.slice_batches(self.data, offset, LARGEST, most)
        return bytes(self.data[first:end])


class World:
    """Stands in for `Cluster` and its connections. `next`: codes or errors of the next fetches; 0: as it is."""

    def __init__(self, **partitions: int) -> None:
        self.logs = {(topic, n): Log() for topic, count in partitions.items() for n in range(count)}
        self.next: deque[int | Exception] = deque()
        self.fetches: list[int] = []
        self.committed: dict[str, dict[str, dict[int, int]]] = {}
        self.forgotten = 0
        self.throttle = 0
        self.commit_code = 0

    def install(self, patch: pytest.MonkeyPatch) -> "World":
        for module in (fetcher, reader, stream):
            patch.setattr(module, "cluster", lambda bootstrap, patience, security: self)
        return self

    def log(self, topic: str = "t", partition: int = 0) -> Log:
        return self.logs.setdefault((topic, partition), Log())

    def partitions(self, topics: Sequence[str] | None) -> dict[str, int]:
        counts: dict[str, int] = {}
        for topic, _ in self.logs:
            counts[topic] = counts.get(topic, 0) + 1
        for topic in topics or ():
            if topic not in counts:
                raise broker_error(f"topic {topic!r}", UNKNOWN)
        return counts if topics is None else {topic: counts[topic] for topic in topics}

    def by_leader(self, places: Iterable[tuple[str, int]]) -> dict[Address, list[tuple[str, int]]]:
        found: dict[Address, list[tuple[str, int]]] = {}
        for topic, partition in places:
            found.setdefault(Address("127.0.0.1", 1 + partition % 2), []).append((topic, partition))
        return found

    def leader(self, topic: str, partition: int) -> "World":
        return self

    def coordinator(self, group: str) -> "World":
        return self

    def forget(self) -> None:
        self.forgotten += 1

    def request(self, message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
        return {FETCH: self._fetch, LIST_OFFSETS: self._list, OFFSET_COMMIT: self._commit}[message](values)

    def _fetch(self, values: Mapping[str, Any]) -> dict[str, Any]:
        (topic,) = values["topics"]
        (asked,) = topic["partitions"]
        self.fetches.append(asked["fetch_offset"])
        trouble = self.next.popleft() if self.next else 0
        if isinstance(trouble, Exception):
            raise trouble
        log = self.logs.get((topic["topic"], asked["partition"]))
        row = {"error_code": trouble, "high_watermark": -1, "last_stable_offset": -1, "records": None}
        row |= {"partition_index": asked["partition"], "aborted_transactions": None}
        if log is None:
            row["error_code"] = row["error_code"] or UNKNOWN
        elif not log.removed <= asked["fetch_offset"] <= log.end:
            row["error_code"] = row["error_code"] or OUT_OF_RANGE
        elif not trouble:
            data = log.read(asked["fetch_offset"], min(values["max_bytes"], asked["partition_max_bytes"]))
            row |= {"high_watermark": log.end, "last_stable_offset": log.end, "records": memoryview(data)}
        return {"error_code": 0, "throttle_time_ms": self.throttle, "responses": [{"partitions": [row]}]}

    def _list(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "topics": [{**topic, "partitions": [*map(self._find, self._places(topic))]} for topic in values["topics"]]
        }

    def _places(self, topic: Mapping[str, Any]) -> list[tuple[str, int, int]]:
        return [(topic["name"], each["partition_index"], each["timestamp"]) for each in topic["partitions"]]

    def _find(self, asked: tuple[str, int, int]) -> dict[str, int]:
        topic, partition, time = asked
        log = self.logs.get((topic, partition))
        if log is None:
            return {"partition_index": partition, "error_code": UNKNOWN, "offset": -1}
        offset = {-1: log.end, -2: log.start}.get(time, -1)
        if time >= 0:
            offset = min((at for at, when in log.records.items() if when >= time), default=-1)
        return {"partition_index": partition, "error_code": 0, "offset": offset}

    def _commit(self, values: Mapping[str, Any]) -> dict[str, Any]:
        if not self.commit_code:
            self.committed[values["group_id"]] = {
                topic["name"]: {each["partition_index"]: each["committed_offset"] for each in topic["partitions"]}
                for topic in values["topics"]
            }
        for topic in values["topics"]:
            for each in topic["partitions"]:
                each["error_code"] = self.commit_code
        return {"topics": values["topics"]}


def options(use: Use, **given: str) -> Options:
    """Options of a read of topic `t`, unless something else is given."""
    chosen = {} if given.keys() & {"assign", "subscribe", "subscribePattern"} else {"subscribe": "t"}
    quick = {"fetchOffset.retryIntervalMs": "1", "kafkaConsumer.pollTimeoutMs": "300"}
    return parse({"kafka.bootstrap.servers": ADDRESS, **quick, **chosen, **given}, use)
