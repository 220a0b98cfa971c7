"""Kafka 0.7's fetch, multifetch and offsets, row by row, and of which topics; on both stores."""

import struct

import pytest

from kafka_server import DESCRIBE_CONFIGS, RawClient, error_of, make_batch
from korvet_reference.header import new_batch
from korvet_reference.legacy_client import EARLIEST, LATEST, FetchError, LegacyClient, encode_message, read_messages
from korvet_reference.records import Record, write_record
from legacy_broker import LegacyBroker, refusal
from legacy_vectors import HELLO, SET, WORLD

# -- 6.3, 6.4 fetch ----------------------------------------------------------------------------------------------------


def test_fetch_row_by_row(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        assert client.fetch(topic, 0, 999) == b"", "unknown topic"
        assert refusal(lambda: client.fetch(topic, 2, 0)) == 3, "partition of an unknown topic"
        client.produce(topic, 0, SET)
        assert client.fetch(topic, 1, 999) == b"", "a partition in range with no log yet"
        assert refusal(lambda: client.fetch(topic, -1, 0)) == 3
        assert refusal(lambda: client.fetch(topic, 2, 0)) == 3
        assert refusal(lambda: client.fetch("a/b", 0, 0)) == -1
        assert client.fetch(topic, 0, 30) == b"", "the end"
        assert refusal(lambda: client.fetch(topic, 0, 31)) == 1
        assert refusal(lambda: client.fetch(topic, 0, -1)) == 1
        for offset in range(30):
            for size in (0, 1, 4, 5, 29, 1000):
                assert client.fetch(topic, 0, offset, size) == SET[offset : offset + size]
        assert refusal(lambda: client.fetch(topic, 0, 0, -1)) == 4
        got = client.multi_fetch([(topic, 0, 15, 100), (topic, 0, 31, 100), ("a/b", 0, 0, 1), (topic, 7, 0, 1)])
        assert got[0] == WORLD
        assert [error.code for error in got[1:] if isinstance(error, FetchError)] == [1, -1, 3]
        assert client.multi_fetch([]) == []


# -- 6.5 offsets, and the edges of segments ----------------------------------------------------------------------------


def test_fetch_ends_at_a_segments_end_and_offsets_name_them(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    message = encode_message(bytes(190))  # 200 bytes: a segment is full when it is larger than 1024
    with legacy.connect() as client:
        for _ in range(14):
            client.produce(topic, 0, message)
        assert [len(client.fetch(topic, 0, at)) for at in (0, 1200, 2400, 1000)] == [1200, 1200, 400, 200]
        assert client.offsets(topic, 0, LATEST, 1) == [2800]
        assert client.offsets(topic, 0, LATEST, 2) == [2800, 2400]
        assert client.offsets(topic, 0, LATEST, 10) == [2800, 2400, 1200, 0]
        assert client.offsets(topic, 0, EARLIEST, 10) == [0]
        assert client.offsets(topic, 0, 1 << 60, 10) == [2800, 2400, 1200, 0], "any future time"
        for time in (0, -3, -1000):
            assert client.offsets(topic, 0, time, 10) == []
        assert client.offsets(topic, 0, LATEST, 0) == []


@pytest.mark.parametrize(("partition", "most"), [(0, -1), (2, 1), (-1, 1)])
def test_offsets_closes_for(legacy: LegacyBroker, partition: int, most: int) -> None:
    topic = legacy.topic()

    def ask(client: LegacyClient) -> None:
        name = topic.encode()
        body = struct.pack(">h", len(name)) + name + struct.pack(">iqi", partition, LATEST, most)
        client.socket.sendall(struct.pack(">ih", len(body) + 2, 4) + body)

    assert legacy.closes(ask)


def test_offsets_of_an_unknown_topic(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        for time in (LATEST, EARLIEST):
            assert (client.offsets(topic, 0, time, 0), client.offsets(topic, 0, time, 5)) == ([0], [0])
        assert client.offsets(topic, 0, 1 << 60, 5) == []


# -- topics made by clients of today -----------------------------------------------------------------------------------


def test_settings_that_such_a_topic_cannot_have(legacy: LegacyBroker) -> None:
    topic = legacy.topic()

    async def scenario(kafka: RawClient) -> None:
        row = await kafka.create(topic, storage_layout="legacy", compression_type="gzip")
        assert error_of(row) == "INVALID_CONFIG"
        assert error_of(await kafka.create(topic, storage_layout="legacy", compression_type="producer")) == ""
        resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
        answer = await kafka.ask(DESCRIBE_CONFIGS, 4, resources=[resource])
        told = {row["name"]: row["value"] for row in answer["results"][0]["configs"]}
        assert (told["storage.layout"], told["message.timestamp.type"]) == ("legacy", "LogAppendTime")

    legacy.kafka(scenario)


def test_what_clients_of_today_write_is_read_by_0_7(legacy: LegacyBroker) -> None:
    topic = legacy.topic()

    async def scenario(kafka: RawClient) -> None:
        assert error_of(await kafka.create(topic, 2, storage_layout="legacy")) == ""
        row = await kafka.produce(topic, make_batch(b"hello", b"world"))
        assert (error_of(row), row["base_offset"]) == ("", 0)
        keyed = new_batch(write_record(Record(0, 0, b"k", b"hello", [])), 0, [0], 0, 0)
        row = await kafka.produce(topic, keyed)
        assert error_of(row) == "INVALID_RECORD"

    legacy.kafka(scenario)
    with legacy.connect() as client:
        data = client.fetch(topic, 0, 0)
        assert data == SET
        assert [message.payload for message in read_messages(data, 0)] == [b"hello", b"world"]


def test_topics_of_other_formats_are_not_visible(legacy: LegacyBroker) -> None:
    topic = legacy.topic()

    async def scenario(kafka: RawClient) -> None:
        await kafka.create(topic, 2)
        assert error_of(await kafka.produce(topic, make_batch(b"hello"))) == ""

    legacy.kafka(scenario)
    with legacy.connect() as client:
        assert refusal(lambda: client.fetch(topic, 0, 0)) == 3
    assert legacy.closes(lambda client: client.produce(topic, 0, HELLO))


def test_a_request_that_names_many_positions_is_answered_within_limits(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client, legacy.connect() as other:
        messages = encode_message(bytes(900)) * 1000
        client.produce(topic, 0, messages)
        assert client.offsets(topic, 0) == [len(messages)]
        asked = [(topic, 0, 0, 1 << 30)] * 2000  # 1.8 GB, had each what it asks for
        got = client.multi_fetch(asked)
        assert other.fetch(topic, 0, 0, 910) == messages[:910]
        sizes = [len(data) for data in got if not isinstance(data, FetchError)]
        assert len(sizes) == len(asked)
        assert sizes[0] == len(messages)
        assert sum(sizes) <= 32 << 20
