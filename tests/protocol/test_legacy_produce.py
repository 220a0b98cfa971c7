"""Kafka 0.7's produce and multiproduce, row by row, and how others read what they stored; on both stores."""

import struct

import pytest

from batches import read_rows
from kafka_server import METADATA, RawClient, error_of
from korvet_reference import compression
from korvet_reference.legacy_client import LATEST, encode_message
from legacy_broker import LegacyBroker
from legacy_vectors import GZIP, HELLO, HELLO_0, SET, SNAPPY, WORLD

# -- 6.1 produce -------------------------------------------------------------------------------------------------------

DAMAGED = HELLO[:-1] + b"X"
FUTURE = bytes.fromhex("0000000b02003610a68668656c6c6f")
CLOSING = {
    "one bad CRC anywhere": HELLO + DAMAGED,
    "a bad CRC in an inner message": encode_message(compression.compress(1, HELLO + DAMAGED), 1),
    "a bad CRC in a nested message": encode_message(
        compression.compress(1, encode_message(compression.compress(1, DAMAGED), 1)), 1
    ),
    "magic other than 0 or 1": HELLO + FUTURE,
    "codec 3": encode_message(b"text", 3),
    "gzip flag on non-gzip data": encode_message(b"text", 1),
    "LENGTH negative": HELLO + struct.pack(">i", -1),
    "LENGTH smaller than its header": struct.pack(">i", 5) + b"\1\0\0\0\0",
    "the first message is already cut short": HELLO[:-1],
}


@pytest.mark.parametrize("row", CLOSING)
def test_produce_closes_and_stores_nothing_for(legacy: LegacyBroker, row: str) -> None:
    topic = legacy.topic()
    assert legacy.closes(lambda client: client.produce(topic, 0, CLOSING[row]))
    with legacy.connect() as client:
        assert client.offsets(topic, 0) == [0]
        client.produce(topic, 0, HELLO)  # and the topic was created all the same
        assert client.fetch(topic, 0, 0) == HELLO


@pytest.mark.parametrize("partition", [-2, 2, 2**31 - 1])
def test_produce_closes_for_a_partition_out_of_range(legacy: LegacyBroker, partition: int) -> None:
    topic = legacy.topic()
    assert legacy.closes(lambda client: client.produce(topic, partition, HELLO))


def test_a_topic_has_the_partitions_that_the_count_map_gives_it(legacy: LegacyBroker) -> None:
    assert legacy.closes(lambda client: client.produce("wide", 5, HELLO))
    with legacy.connect() as client:
        client.produce("wide", 4, HELLO)
        assert client.fetch("wide", 4, 0) == HELLO


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a\0b", "x" * 256])
def test_produce_closes_for_an_illegal_topic(legacy: LegacyBroker, topic: str) -> None:
    assert legacy.closes(lambda client: client.produce(topic, 0, HELLO))


def test_produce_to_partition_minus_1_goes_to_a_random_one(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        for _ in range(64):
            client.produce(topic, -1, HELLO)
        ends = [client.offsets(topic, index)[0] for index in range(2)]
    assert sum(ends) == 64 * len(HELLO)
    assert min(ends) > 0


@pytest.mark.parametrize("left_over", [1, 2, 3, 4, len(WORLD) - 1])
def test_produce_stores_the_whole_messages_before_a_partial_one(legacy: LegacyBroker, left_over: int) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO + WORLD[:left_over])
        assert client.fetch(topic, 0, 0) == HELLO


def test_produce_drops_a_set_with_a_large_message_and_stays_open(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    exact = encode_message(bytes(1000))
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO + encode_message(bytes(1001)))
        assert client.fetch(topic, 0, 0) == b""
        client.produce(topic, 0, exact)
        assert client.fetch(topic, 0, 0) == exact
        inner = encode_message(compression.compress(1, encode_message(bytes(2000))), 1)
        client.produce(topic, 0, inner)  # inner sizes do not count
        assert client.offsets(topic, 0) == [len(exact) + len(inner)]


def test_produce_of_an_empty_set_creates_the_topic(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, b"")
        assert client.offsets(topic, 0) == [0]

    async def scenario(kafka: RawClient) -> None:
        answer = await kafka.ask(METADATA, 9, topics=[{"name": topic}])
        assert len(answer["topics"][0]["partitions"]) == 2

    legacy.kafka(scenario)


# -- 6.2 multiproduce --------------------------------------------------------------------------------------------------


def test_multiproduce_skips_what_is_too_large_and_ends_at_what_is_wrong(legacy: LegacyBroker) -> None:
    first, large, bad, late = (legacy.topic() for _ in range(4))
    too_large = encode_message(bytes(1001))
    sets = [(first, 0, HELLO), (large, 0, too_large), (large, 1, WORLD), (bad, 0, DAMAGED), (late, 0, HELLO)]
    assert legacy.closes(lambda client: client.multi_produce(sets))
    with legacy.connect() as client:
        assert client.fetch(first, 0, 0) == HELLO
        assert (client.fetch(large, 0, 0), client.fetch(large, 1, 0)) == (b"", WORLD)
        assert (client.fetch(bad, 0, 0), client.fetch(late, 0, 0)) == (b"", b"")


def test_a_bomb_of_nested_gzip_is_bounded_and_closed(legacy: LegacyBroker) -> None:
    bomb = encode_message(bytes(256 << 20))
    for _ in range(3):
        bomb = encode_message(compression.compress(1, bomb), 1)
    assert len(bomb) < 1000
    assert legacy.closes(lambda client: client.produce(legacy.topic(), 0, bomb))


def test_no_segment_divides_a_set(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    messages = encode_message(bytes(900)) * 200  # several batches
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO)
        client.produce(topic, 0, messages)
        client.produce(topic, 0, WORLD)
        end = len(HELLO) + len(messages)
        assert client.offsets(topic, 0, LATEST, 10) == [end + len(WORLD), end, 0]
        assert client.fetch(topic, 0, 0) == HELLO + messages


def test_what_0_7_wrote_is_read_by_clients_of_today(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, SET + GZIP + SNAPPY + HELLO_0)
        end = client.offsets(topic, 0)[0]

    async def scenario(kafka: RawClient) -> None:
        got = await kafka.fetch(topic, 0)
        assert error_of(got) == ""
        rows = read_rows(got["records"])
        assert rows == [
            (0, b"hello"),
            (15, b"world"),
            (30, b"hello"),
            (31, b"world"),
            (87, b"hello"),
            (88, b"world"),
            (149, b"hello"),
        ]
        assert got["high_watermark"] == end == 163

    legacy.kafka(scenario)
