"""Of which topics Kafka 0.7's requests read, and how much at once, beside the rows of section 6; on both stores."""

from kafka_server import DESCRIBE_CONFIGS, RawClient, error_of, make_batch
from korvet_reference.header import new_batch
from korvet_reference.legacy_client import FetchError, encode_message, read_messages
from korvet_reference.records import Record, write_record
from legacy_broker import LegacyBroker, refusal
from legacy_vectors import HELLO, SET

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


def test_several_fetches_of_one_page_are_alike(legacy: LegacyBroker) -> None:
    """An answer is made in the buffer that its page was read into: each has a buffer of its own."""
    topic = legacy.topic()
    sent = b"".join(encode_message(b"%d" % number * (number % 90)) for number in range(900))
    with legacy.connect() as client, legacy.connect() as other:
        client.produce(topic, 0, sent)
        client.produce(topic, 1, SET)
        places = [(topic, 0, offset, 5000) for offset in (0, 0, 7, 2500, 0)]
        for asked in (places, places * 3):
            got = client.multi_fetch([*asked, (topic, 1, 0, 100)])
            assert got == [*(sent[offset : offset + 5000] for _, _, offset, _ in asked), SET]
            assert other.fetch(topic, 0, 0) == sent
