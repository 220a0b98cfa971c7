"""Section 6 of the notes on Kafka 0.7, of segments: the rows of 6.5, and where 6.3 ends a FETCH, on both stores."""

import struct
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from kafka_server import DELETE_RECORDS, RawClient
from korvet_reference.legacy_client import EARLIEST, LATEST, LegacyClient, encode_message
from legacy_broker import LegacyBroker, refusal
from legacy_vectors import HELLO

UNKNOWN, EMPTY = "unknown topic", "partition without a log"
WHOLE = 1 << 20

# The notes have messages of 100 bytes and segments at 0, 400 and 800: here everything is three times as large, for a
# segment is full when it is larger than 1024 bytes.
SIZE = 300
EDGES = (0, 4 * SIZE, 8 * SIZE)
END = 10 * SIZE
PAUSE = 0.03  # seconds, so that the times of two appends are not the same


class Log(NamedTuple):
    """A topic with three segments; `moments`: times in ms behind the last append of the first two, and behind all."""

    topic: str
    moments: tuple[int, int, int]


@pytest.fixture(scope="module")
def log(legacy: LegacyBroker) -> Log:
    topic, moments = legacy.topic(), []
    with legacy.connect() as client:
        for many in (4, 4, 2):
            for _ in range(many):
                client.produce(topic, 0, encode_message(bytes(SIZE - 10)))
            client.offsets(topic, 0)  # it is all there
            time.sleep(PAUSE)
            moments.append(int(time.time() * 1000) - 5)  # the end's time is the clock's at the moment of the answer
            time.sleep(PAUSE)
    return Log(topic, (moments[0], moments[1], moments[2]))


Choosing = Callable[[Log], int]
OFFSETS: tuple[tuple[str, Choosing, int, list[int]], ...] = (
    ("6.5.1 -1, n=1", lambda log: LATEST, 1, [END]),
    ("6.5.1 -1, n=2", lambda log: LATEST, 2, [END, EDGES[2]]),
    ("6.5.1 -1, n=10", lambda log: LATEST, 10, [END, *reversed(EDGES)]),
    ("6.5.1 -1, n=2147483647", lambda log: LATEST, 2**31 - 1, [END, *reversed(EDGES)]),
    ("6.5.2 -2, n=1", lambda log: EARLIEST, 1, [0]),
    ("6.5.2 -2, n=10", lambda log: EARLIEST, 10, [0]),
    ("6.5.3 a time between the last writes of two segments", lambda log: log.moments[0], 10, [0]),
    ("6.5.4 a time after the last write of the second", lambda log: log.moments[1], 10, [EDGES[1], 0]),
    ("6.5.5 the present moment", lambda log: log.moments[2], 10, [EDGES[2], EDGES[1], 0]),
    ("6.5.6 any future time", lambda log: log.moments[2] + 3_600_000, 10, [END, *reversed(EDGES)]),
    ("6.5.6 any future time, the largest", lambda log: 2**63 - 1, 10, [END, *reversed(EDGES)]),
    ("6.5.7 time 0", lambda log: 0, 10, []),
    ("6.5.7 time -3", lambda log: -3, 10, []),
    ("6.5.7 time below", lambda log: -(2**63), 10, []),
    ("6.5.8 n = 0", lambda log: LATEST, 0, []),
    ("6.5.8 n = 0, from the start", lambda log: EARLIEST, 0, []),
)


@pytest.mark.parametrize(("moment", "most", "wanted"), [row[1:] for row in OFFSETS], ids=[row[0] for row in OFFSETS])
def test_6_5_offsets(legacy: LegacyBroker, log: Log, moment: Choosing, most: int, wanted: list[int]) -> None:
    with legacy.connect() as client:
        assert client.offsets(log.topic, 0, moment(log), most) == wanted


@pytest.mark.parametrize(
    ("partition", "most"),
    [(0, -1), (0, -(2**31)), (2, 1), (-1, 1), (2**31 - 1, 1)],
    ids=["6.5.9 n < 0", "6.5.9 n < 0, the least", *(f"6.5.10 partition out of range, {n}" for n in (2, -1, 2**31 - 1))],
)
def test_6_5_offsets_closes_for(legacy: LegacyBroker, log: Log, partition: int, most: int) -> None:
    def ask(client: LegacyClient) -> None:
        name = log.topic.encode()
        body = struct.pack(">h", len(name)) + name + struct.pack(">iqi", partition, LATEST, most)
        client.socket.sendall(struct.pack(">ih", len(body) + 2, 4) + body)

    assert legacy.closes(ask)


@pytest.mark.parametrize("where", [UNKNOWN, EMPTY])
def test_6_5_offsets_row_11_unknown_topic_or_no_log(legacy: LegacyBroker, where: str) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        if where == EMPTY:
            client.produce(topic, 1, HELLO)
        for moment in (LATEST, EARLIEST):
            assert [client.offsets(topic, 0, moment, most) for most in (0, 1, 5)] == [[0], [0], [0]]
        for moment in (0, -3, 1_350_000_000_000, 1 << 60):
            assert client.offsets(topic, 0, moment, 5) == []
    assert legacy.exists(topic) == (where == EMPTY)


@pytest.mark.parametrize(
    ("offset", "size", "wanted"),
    [(0, WHOLE, 4 * SIZE), (4 * SIZE, WHOLE, 4 * SIZE), (8 * SIZE, WHOLE, 2 * SIZE), (3 * SIZE, 450, SIZE)],
    ids=["0", "400", "800", "300 with max 150"],
)
def test_6_3_a_fetch_ends_at_its_segments_end(
    legacy: LegacyBroker, log: Log, offset: int, size: int, wanted: int
) -> None:
    with legacy.connect() as client:
        assert len(client.fetch(log.topic, 0, offset, size)) == wanted


@pytest.mark.parametrize("start", [EDGES[1], EDGES[1] + SIZE], ids=["a segment's edge", "a message inside a segment"])
def test_6_3_row_5_offset_below_the_first_segment_start(legacy: LegacyBroker, start: int) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        for _ in range(10):
            client.produce(topic, 0, encode_message(bytes(SIZE - 10)))
        assert client.offsets(topic, 0, most=10) == [END, *reversed(EDGES)]

        async def delete_below_start(kafka: RawClient) -> None:
            row = {"partition_index": 0, "offset": start}
            answer = await kafka.ask(
                DELETE_RECORDS, 2, topics=[{"name": topic, "partitions": [row]}], timeout_ms=30_000
            )
            (found,) = answer["topics"][0]["partitions"]
            assert (found["error_code"], found["low_watermark"]) == (0, start)

        legacy.kafka(delete_below_start)
        for offset in (0, EDGES[1] - 1, start - 1):
            assert refusal(lambda offset=offset: client.fetch(topic, 0, offset)) == 1  # type: ignore[misc]
        assert len(client.fetch(topic, 0, start)) == EDGES[2] - start
        assert client.offsets(topic, 0, EARLIEST) == [start]
        assert client.offsets(topic, 0, LATEST, 10) == [END, EDGES[2], start]


def test_6_3_there_is_no_error_behind_the_end_of_a_segment(legacy: LegacyBroker, log: Log) -> None:
    with legacy.connect() as client:
        assert refusal(lambda: client.fetch(log.topic, 0, END + 1)) == 1
        assert client.fetch(log.topic, 0, END) == b""
        read = b"".join(client.fetch(log.topic, 0, edge) for edge in EDGES)
    assert read == encode_message(bytes(SIZE - 10)) * 10
