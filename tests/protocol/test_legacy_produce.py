"""What Kafka 0.7's produce does beside the rows of section 6, and how others read what it stored; on both stores."""

from batches import read_rows
from kafka_server import RawClient, error_of
from korvet_reference import compression
from korvet_reference.legacy_client import LATEST, encode_message
from legacy_broker import LegacyBroker
from legacy_vectors import GZIP, HELLO, HELLO_0, SET, SNAPPY, WORLD


def test_a_topic_has_the_partitions_that_the_count_map_gives_it(legacy: LegacyBroker) -> None:
    assert legacy.closes(lambda client: client.produce("wide", 5, HELLO))
    with legacy.connect() as client:
        client.produce("wide", 4, HELLO)
        assert client.fetch("wide", 4, 0) == HELLO


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
