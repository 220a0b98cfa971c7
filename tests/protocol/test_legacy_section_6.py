"""Section 6 of the notes on Kafka 0.7: each row of its tables is a test of that name, on both stores.

6.5, and where segments end, are in `test_legacy_section_6_segments.py`.
"""

import struct
import time
from typing import Any, NamedTuple

import pytest

from korvet_reference import compression
from korvet_reference.legacy_client import FetchError, LegacyClient, encode_message
from legacy_broker import LegacyBroker
from legacy_vectors import EMPTY_0, EMPTY_1, GZIP, HELLO, HELLO_0, SET, SNAPPY, WORLD

LARGEST = 1000  # bytes of a payload that the broker takes (legacy_broker.SETTINGS)
DAMAGED = HELLO[:-1] + b"X"
FUTURE = bytes.fromhex("0000000b02003610a68668656c6c6f")


def wrap(messages: bytes) -> bytes:
    return encode_message(compression.compress(1, messages), 1)


# -- 6.1 produce -------------------------------------------------------------------------------------------------------


class Produced(NamedTuple):
    """A row of 6.1: what is sent, what is stored of it, and whether the connection is closed."""

    row: str
    sent: bytes
    stored: bytes = b""
    closed: bool = False
    partition: int = 0


PRODUCED = (
    Produced("6.1.1 valid set", SET, SET),
    Produced("6.1.1 valid set, of everything", SET + HELLO_0 + EMPTY_0 + EMPTY_1 + GZIP + SNAPPY + wrap(GZIP),
             SET + HELLO_0 + EMPTY_0 + EMPTY_1 + GZIP + SNAPPY + wrap(GZIP)),
    Produced("6.1.1 valid set, higher attribute bits are stored", encode_message(b"x", 4), encode_message(b"x", 4)),
    Produced("6.1.3 partition < -1", HELLO, closed=True, partition=-2),
    Produced("6.1.3 partition >= n", HELLO, closed=True, partition=2),
    Produced("6.1.3 partition >= n, the largest", HELLO, closed=True, partition=2**31 - 1),
    Produced("6.1.5 one bad CRC anywhere, in front", DAMAGED + HELLO, closed=True),
    Produced("6.1.5 one bad CRC anywhere, behind", HELLO + DAMAGED, closed=True),
    Produced("6.1.5 one bad CRC anywhere, in a wrapper", HELLO + wrap(HELLO + DAMAGED), closed=True),
    Produced("6.1.5 one bad CRC anywhere, in a nested wrapper", wrap(wrap(DAMAGED)), closed=True),
    Produced("6.1.5 one bad CRC anywhere, of a wrapper", GZIP[:6] + b"\0" + GZIP[7:], closed=True),
    Produced("6.1.6 magic other than 0 or 1", HELLO + FUTURE, closed=True),
    Produced("6.1.6 codec 3", encode_message(b"text", 3), closed=True),
    Produced("6.1.6 gzip flag on non-gzip data", encode_message(b"text", 1), closed=True),
    Produced("6.1.6 snappy flag on data that is not framed", encode_message(b"text", 2), closed=True),
    Produced("6.1.6 LENGTH negative", HELLO + struct.pack(">i", -1), closed=True),
    Produced("6.1.6 LENGTH negative, the least", HELLO + struct.pack(">i", -(2**31)), closed=True),
    Produced("6.1.6 LENGTH negative, in a wrapper", wrap(HELLO + struct.pack(">i", -1)), closed=True),
    Produced("6.1.6 magic other than 0 or 1, in a wrapper", wrap(HELLO + FUTURE), closed=True),
    Produced("6.1.6 codec 3, in a wrapper", wrap(encode_message(b"text", 3)), closed=True),
    Produced("6.1.6 gzip data that ends too soon", encode_message(compression.compress(1, SET)[:-9], 1), closed=True),
    Produced("6.1.6 LENGTH 0", HELLO + bytes(4), closed=True),
    Produced("6.1.6 LENGTH smaller than the header of magic 0", struct.pack(">i", 4) + bytes(4), closed=True),
    Produced("6.1.6 LENGTH smaller than the header of magic 1", struct.pack(">i", 5) + b"\1\0\0\0\0", closed=True),
    *(Produced(f"6.1.7 last message cut short, {left} bytes left over", SET + WORLD[:left], SET)
      for left in range(1, len(WORLD))),
    *(Produced(f"6.1.8 the first message is already cut short, {left} bytes", HELLO[:left], closed=True)
      for left in range(1, len(HELLO))),
    Produced("6.1.7 last message cut short, a LENGTH of 2147483647", SET + struct.pack(">i", 2**31 - 1), SET),
    Produced("6.1.8 the first message is already cut short, a LENGTH of 2147483647",
             struct.pack(">i", 2**31 - 1) + WORLD, closed=True),
    Produced("6.1.9 a payload larger than max.message.size", HELLO + encode_message(bytes(LARGEST + 1)) + WORLD),
    Produced("6.1.9 a payload of max.message.size", encode_message(bytes(LARGEST)), encode_message(bytes(LARGEST))),
    Produced("6.1.9 inner sizes do not count", wrap(encode_message(bytes(2 * LARGEST))),
             wrap(encode_message(bytes(2 * LARGEST)))),
    Produced("6.1.10 empty set", b""),
)  # fmt: skip


@pytest.mark.parametrize("row", PRODUCED, ids=[row.row for row in PRODUCED])
def test_6_1_produce(legacy: LegacyBroker, row: Produced) -> None:
    topic = legacy.topic()
    assert legacy.closes(lambda client: client.produce(topic, row.partition, row.sent)) == row.closed
    with legacy.connect() as client:
        assert client.offsets(topic, 0) == [len(row.stored)]
        assert client.fetch(topic, 0, 0) == row.stored
    # What is wrong with the contents leaves the topic behind; what is wrong with the partition does not.
    assert legacy.exists(topic) == (row.partition == 0)


def test_6_1_produce_row_2_partition_minus_1(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        for _ in range(64):
            client.produce(topic, -1, HELLO)
        ends = [client.offsets(topic, index)[0] for index in range(2)]
    assert sum(ends) == 64 * len(HELLO)
    assert min(ends) > 0


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a\0b", "\x7f", "\ue000", "x" * 256])
def test_6_1_produce_row_4_illegal_topic(legacy: LegacyBroker, topic: str) -> None:
    assert legacy.closes(lambda client: client.produce(topic, 0, HELLO))


def test_6_1_produce_row_9_is_told_in_the_log(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, encode_message(bytes(LARGEST + 1)))
        assert client.offsets(topic, 0) == [0]
    deadline = time.monotonic() + 60
    while not (found := [line for line in legacy.process.log if "were dropped" in line]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert f"a message of {LARGEST + 1} bytes, and {LARGEST} are taken" in found[0]


# -- 6.2 multiproduce --------------------------------------------------------------------------------------------------


def test_6_2_multiproduce_one_that_is_too_large_is_skipped(legacy: LegacyBroker) -> None:
    topics = [legacy.topic() for _ in range(3)]
    data = (HELLO, encode_message(bytes(LARGEST + 1)), WORLD)
    with legacy.connect() as client:
        client.multi_produce([(topic, 0, one) for topic, one in zip(topics, data, strict=True)])
        assert [client.fetch(topic, 0, 0) for topic in topics] == [HELLO, b"", WORLD]


@pytest.mark.parametrize("wrong", ["contents", "partition", "topic"])
def test_6_2_multiproduce_one_that_fails_ends_the_request(legacy: LegacyBroker, wrong: str) -> None:
    first, bad, late = (legacy.topic() for _ in range(3))
    sets = {"contents": (bad, 0, DAMAGED), "partition": (bad, 9, HELLO), "topic": ("a/b", 0, HELLO)}
    assert legacy.closes(lambda client: client.multi_produce([(first, 0, HELLO), sets[wrong], (late, 0, HELLO)]))
    with legacy.connect() as client:
        assert [client.fetch(topic, 0, 0) for topic in (first, bad, late)] == [HELLO, b"", b""]
    assert not legacy.exists(late)


# -- 6.3, 6.4 fetch, multifetch ----------------------------------------------------------------------------------------

UNKNOWN, EMPTY, FULL = "unknown topic", "partition without a log", "partition with a log"
WHOLE = 1 << 20


class Fetched(NamedTuple):
    """A row of 6.3: where is read, and the bytes or the error."""

    row: str
    where: str
    offset: int
    size: int
    answer: bytes | int
    partition: int = 0


FETCHED = (
    *(Fetched(f"6.3.1 {where}, offset {offset}", where, offset, WHOLE, b"")
      for where in (UNKNOWN, EMPTY) for offset in (0, 999, -1)),
    *(Fetched(f"6.3.2 partition {index}, {where}", where, 0, WHOLE, 3, index)
      for where in (UNKNOWN, FULL) for index in (-1, 2, 2**31 - 1)),
    Fetched("6.3.3 illegal topic", "a/b", 0, WHOLE, -1),
    Fetched("6.3.4 offset = end of the visible log", FULL, len(SET), WHOLE, b""),
    Fetched("6.3.5 offset > visible end", FULL, len(SET) + 1, WHOLE, 1),
    Fetched("6.3.5 offset > visible end, the largest", FULL, 2**63 - 1, WHOLE, 1),
    Fetched("6.3.5 offset < first segment start", FULL, -1, WHOLE, 1),
    *(Fetched(f"6.3.6 offset in the middle of a message, {offset}", FULL, offset, WHOLE, SET[offset:])
      for offset in range(1, len(SET))),
    *(Fetched(f"6.3.7 max_size smaller than a message, {size}", FULL, 0, size, SET[:size]) for size in range(16)),
    *(Fetched(f"6.3.7 max_size smaller than the rest, {size} at 7", FULL, 7, size, SET[7 : 7 + size])
      for size in (1, 8, 9, 22)),
    Fetched("6.3.7 max_size larger than all there is, 2147483647", FULL, 0, 2**31 - 1, SET),
    Fetched("6.3.8 max_size negative", FULL, 0, -1, 4),
    Fetched("6.3.8 max_size negative, the largest", FULL, 0, -(2**31), 4),
)  # fmt: skip


@pytest.mark.parametrize("way", ["fetch", "multifetch"])
@pytest.mark.parametrize("row", FETCHED, ids=[row.row for row in FETCHED])
def test_6_3_fetch(legacy: LegacyBroker, row: Fetched, way: str) -> None:
    topic = row.where if row.where == "a/b" else legacy.topic()
    with legacy.connect() as client:
        if row.where == FULL:
            client.produce(topic, 0, SET)
        elif row.where == EMPTY:
            client.produce(topic, 1, SET)
        at = topic, row.partition, row.offset, row.size
        assert answer_to(client, at, way) == row.answer
    assert legacy.exists(topic) == (row.where in (FULL, EMPTY)), "0.7.2 creates no topic that is read"


def answer_to(client: LegacyClient, at: tuple[str, int, int, int], way: str) -> bytes | int:
    try:
        found: Any = client.fetch(*at) if way == "fetch" else client.multi_fetch([at])[0]
    except FetchError as error:
        found = error
    return found.code if isinstance(found, FetchError) else bytes(found)


def test_6_4_multifetch_each_body_is_a_fetch_of_its_own(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, SET)
        asked = [(topic, 0, 15, 100), (topic, 0, 31, 100), ("a/b", 0, 0, 1), (topic, 7, 0, 1), (topic, 0, 0, -1)]
        got = client.multi_fetch([*asked, (topic, 0, 0, 15), (legacy.topic(), 0, 0, 1)])
        codes = [one.code if isinstance(one, FetchError) else bytes(one) for one in got]
        assert codes == [WORLD, 1, -1, 3, 4, HELLO, b""]
        assert client.multi_fetch([]) == []
