"""Consumers read from a follower in their own rack (KIP-392), and in lines of text from any broker."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faults.replication.trio import PATIENCE, QUICK, Trio
from kafka_server import LIST_OFFSETS
from raw_connection import connect
from text_client import TextClient

RACK_AWARE = "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
NOT_LEADER, OFFSET_OUT_OF_RANGE, OFFSET_NOT_AVAILABLE = 6, 1, 78
COUNT = 300


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    with Trio(tmp_path_factory.mktemp("racks"), RACK_AWARE, more=QUICK) as running:
        yield running


def produce(trio: Trio, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": trio.bootstrap, "acks": "all", "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(PATIENCE) == 0


class RackConsumer:
    """librdkafka in a rack, which fails where its offset is reset. `served_by`: who it reads partition 0 from."""

    def __init__(self, trio: Trio, topic: str, rack: str) -> None:
        self.served_by = -1
        self.values: list[int] = []
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": trio.bootstrap,
                "group.id": topic,
                "enable.auto.commit": False,
                "client.rack": rack,
                "auto.offset.reset": "error",
                "statistics.interval.ms": 100,
                "stats_cb": self._note,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def _note(self, text: str) -> None:
        found = json.loads(text)["topics"].get(self._topic, {}).get("partitions", {}).get("0")
        if found is not None:
            self.served_by = found["broker"]

    def read_until(self, rule: "object") -> None:
        """Read until it holds."""
        deadline = time.monotonic() + PATIENCE
        while not rule():  # type: ignore[operator]
            assert time.monotonic() < deadline, (self.served_by, self.values[-3:])
            message = self._consumer.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                self.values.append(int(message.value()))

    def close(self) -> None:
        self._consumer.close()


def test_consumers_read_in_their_own_rack_whoever_leads(trio: Trio, topic: str) -> None:
    trio.create(topic, 1)
    produce(trio, topic, 0, COUNT)
    consumers = {identity: RackConsumer(trio, topic, f"rack-{identity}") for identity in (1, 2, 3)}
    try:
        for identity, consumer in consumers.items():
            consumer.read_until(lambda c=consumer, i=identity: len(c.values) == COUNT and c.served_by == i)
        trio.appoint(topic, 0, trio.find_leader(topic) % 3 + 1)
        produce(trio, topic, COUNT, COUNT)
        for consumer in consumers.values():
            consumer.read_until(lambda c=consumer: len(c.values) == 2 * COUNT)
            assert consumer.values == list(range(2 * COUNT))
    finally:
        for consumer in consumers.values():
            consumer.close()


def test_a_consumer_goes_on_when_its_follower_is_killed(trio: Trio, topic: str) -> None:
    trio.create(topic, 1)
    produce(trio, topic, 0, COUNT)
    leader = trio.find_leader(topic)
    gone = 3 if leader != 3 else 2  # broker 1 may lead the metadata log
    consumer = RackConsumer(trio, topic, f"rack-{gone}")
    try:
        consumer.read_until(lambda: len(consumer.values) == COUNT and consumer.served_by == gone)
        trio.brokers[gone].kill()
        trio.away = trio.brokers[gone]
        produce(trio, topic, COUNT, COUNT)
        consumer.read_until(lambda: len(consumer.values) == 2 * COUNT)
        assert consumer.values == list(range(2 * COUNT))
    finally:
        consumer.close()
        trio.away = None
        trio.start(gone)
        trio.wait_for(topic, lambda one: len(one.isrs) == 3)


async def look(port: int, topic: str) -> tuple[dict[str, Any], list[int]]:
    """A broker's answer to Fetch, and its errors: above the end, of version 10, of ListOffsets."""
    async with connect(port) as client:
        row = await client.fetch(topic, 0, max_wait_ms=100)
        above = await client.fetch(topic, COUNT + 1, max_wait_ms=100)
        older = await client.fetch(topic, 0, max_wait_ms=100, version=10)
        asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        told = await client.ask(LIST_OFFSETS, 7, replica_id=-1, topics=asked)
        listed = told["topics"][0]["partitions"][0]
        return row, [above["error_code"], older["error_code"], listed["error_code"]]


def test_a_follower_answers_fetch_and_leaves_the_rest_to_the_leader(trio: Trio, topic: str) -> None:
    trio.create(topic, 1)
    produce(trio, topic, 0, COUNT)
    leader = trio.find_leader(topic)
    for identity, broker in trio.brokers.items():
        deadline = time.monotonic() + PATIENCE
        refused = 0 if identity == leader else NOT_LEADER
        row, errors = asyncio.run(look(broker.port, topic))
        # A follower that is late for a moment says that it does not have the offset yet.
        while row["high_watermark"] < COUNT or errors[0] == OFFSET_NOT_AVAILABLE:
            assert time.monotonic() < deadline, (row, errors)
            row, errors = asyncio.run(look(broker.port, topic))
        assert (row["error_code"], row["preferred_read_replica"], bool(row["records"])) == (0, -1, True)
        assert errors == [OFFSET_OUT_OF_RANGE, refused, refused]


def test_lines_of_text_are_read_from_any_broker(trio: Trio, topic: str) -> None:
    trio.create(topic, 1)
    leader = trio.find_leader(topic)
    with TextClient(trio.texts[leader]) as client:
        for number in range(3):
            assert client.ask(f"V1|{number}|PRODUCE|{topic} k:{number} acks=all").startswith(f"V1|{number}|OK|")
    for broker in (1, 2, 3):
        with TextClient(trio.texts[broker]) as client:
            deadline = time.monotonic() + PATIENCE
            while (answer := client.ask(f"V1|1|CONSUME|{topic} 0 0")) != "V1|1|OK|messages=0:0,1:1,2:2 hw=3":
                assert broker != leader, answer
                assert time.monotonic() < deadline, answer
            if broker != leader:
                assert client.ask(f"V1|2|PRODUCE|{topic} k:v").startswith("V1|2|ERR|NOT_LEADER|")
