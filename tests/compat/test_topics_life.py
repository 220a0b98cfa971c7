"""Topics cut by hand, deleted and made anew, and over restarts."""

import time

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess
from kafka_server import METADATA, RawClient, make_batch
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import read_log, start_producer
from topic_life import find, read_log_from, scene, segments


def test_records_are_deleted_by_hand(tidy_broker: BrokerProcess, topic: str) -> None:
    async def fill(client: RawClient) -> None:
        await client.create(topic)
        for number in range(4):
            await client.produce(topic, make_batch(*(b"%d" % (5 * number + row) for row in range(5))))

    async def look(client: RawClient) -> None:
        assert await read_log_from(client, topic, 7) == [b"%d" % number for number in range(7, 20)]
        assert (await client.fetch(topic, 6))["error_code"] == CODES["OFFSET_OUT_OF_RANGE"]
        row = await client.fetch(topic, 7)
        assert (row["error_code"], row["log_start_offset"]) == (0, 7)
        assert (await find(client, topic, -2))[0][0] == 7

    async def look_at_nothing(client: RawClient) -> None:
        assert await find(client, topic, -2, -1) == [(20, -1), (20, -1)]
        assert (await client.produce(topic, make_batch(b"new")))["base_offset"] == 20

    def delete(offset: int) -> int:
        # A new client each time: one that has just lost its broker says "no leaders found" without asking anybody.
        admin = AdminClient({"bootstrap.servers": tidy_broker.bootstrap})
        partition = TopicPartition(topic, 0, offset)
        return int(admin.delete_records([partition])[partition].result(60).low_watermark)

    scene(tidy_broker, fill)
    assert delete(7) == 7
    assert delete(3) == 7
    with pytest.raises(KafkaException) as refused:
        delete(21)
    assert refused.value.args[0].name() == "OFFSET_OUT_OF_RANGE"
    tidy_broker.kill()
    tidy_broker.start()
    scene(tidy_broker, look)
    assert delete(-1) == 20
    scene(tidy_broker, look_at_nothing)


def test_a_topic_made_anew_begins_anew(tidy_broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": tidy_broker.bootstrap})
    ids = []
    producers: list[tuple[int, int]] = []

    async def write(client: RawClient) -> None:
        answer = await client.ask(METADATA, 12, topics=[{"name": topic, "topic_id": bytes(16)}])
        ids.append(answer["topics"][0]["topic_id"])
        if not producers:
            producers.append(await start_producer(client))
        # The same producer, from sequence 0 again: the new topic knows nothing of it.
        row = await client.produce(topic, make_batch(b"%d" % len(ids), producer=(*producers[0], 0)))
        assert (row["error_code"], row["base_offset"]) == (0, 0)
        assert await read_log(client, topic) == [b"%d" % len(ids)]

    async def gone(client: RawClient) -> None:
        assert (await client.produce(topic, make_batch(b"x")))["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        answer = await client.ask(METADATA, 12, topics=[{"name": None, "topic_id": ids[-1]}])
        assert answer["topics"][0]["error_code"] == CODES["UNKNOWN_TOPIC_ID"]

    for number in range(3):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
        scene(tidy_broker, write)
        if number == 1:
            tidy_broker.kill()
            tidy_broker.start()
            admin = AdminClient({"bootstrap.servers": tidy_broker.bootstrap})
        admin.delete_topics([topic])[topic].result(60)
        scene(tidy_broker, gone)
        assert segments(tidy_broker, topic) == []
    assert len(set(ids)) == 3


def test_without_auto_creation_unknown_topics_stay_unknown(tidy_broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        answer = await client.ask(METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=True)
        assert answer["topics"][0]["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        assert (await client.produce(topic, make_batch(b"x")))["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        answer = await client.ask(METADATA, 9, topics=None)
        assert topic not in [row["name"] for row in answer["topics"]]

    scene(tidy_broker, work)


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_producers_are_known_after_a_restart(tidy_broker: BrokerProcess, topic: str, clean: bool) -> None:
    async def write(client: RawClient) -> None:
        await client.create(topic)
        producer.extend(await start_producer(client))
        await client.produce(topic, make_batch(b"of nobody"))
        for number in range(7):
            await client.produce(topic, bytearray(batch(number)))

    async def look(client: RawClient) -> None:
        for number in range(2, 7):  # the last five, in any order
            row = await client.produce(topic, bytearray(batch(8 - number)))
            assert (row["error_code"], row["base_offset"]) == (0, 1 + 2 * (8 - number))
        for wrong in (make_batch(b"gap", producer=(*producer, 15)), make_batch(b"other", producer=(*producer, 12))):
            assert (await client.produce(topic, wrong))["error_code"] == CODES["OUT_OF_ORDER_SEQUENCE_NUMBER"]
        row = await client.produce(topic, bytearray(batch(0)))
        assert row["error_code"] == CODES["DUPLICATE_SEQUENCE_NUMBER"]  # too long ago to say where it is
        row = await client.produce(topic, make_batch(b"late", producer=(*producer, 14)))
        assert (row["error_code"], row["base_offset"]) == (0, 15)
        new = await start_producer(client)
        assert new[0] not in (producer[0], -1)
        assert len(await read_log(client, topic)) == 16

    def batch(number: int) -> bytes:
        return bytes(make_batch(b"%d" % number, b"second", time_ms=now, producer=(*producer, 2 * number)))

    now = int(time.time() * 1000)
    producer: list[int] = []
    scene(tidy_broker, write)
    if clean:
        assert tidy_broker.stop() == 0
    else:
        tidy_broker.kill()
    tidy_broker.start()
    scene(tidy_broker, look)
