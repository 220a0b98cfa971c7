"""Drivers and tasks of Spark are killed: what the source gave counts once, and what the sink has is counted too."""

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_process import BrokerProcess
from compat.spark import topics
from faults.spark.conftest import Drivers

pytestmark = pytest.mark.timeout(900)
PARTITIONS = 2
ROWS = 100_000
MADE = ("cast(id as string) as key", "cast(id as string) as value")


class Scene:
    """A topic of the test's own, and requests about it."""

    def __init__(self, broker: BrokerProcess, place: Path) -> None:
        self.bootstrap = broker.bootstrap
        self.place = place

    def topic(self) -> str:
        name = f"t-{uuid4().hex}"
        topics.create(self.bootstrap, name, PARTITIONS)
        return name

    def produce(self, topic: str, numbers: range) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "queue.buffering.max.messages": 1_000_000})
        for number in numbers:
            producer.produce(topic, str(number), partition=number % PARTITIONS)
        assert producer.flush(60) == 0

    def values(self, topic: str) -> Counter[int]:
        """How often each number is in the topic."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "count"})
        found: Counter[int] = Counter()
        try:
            for partition in range(PARTITIONS):
                _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
                consumer.assign([TopicPartition(topic, partition, 0)])
                at = 0
                while at < end:
                    messages = consumer.consume(min(10_000, end - at), 30)  # it waits until it has as many
                    assert messages, f"nothing can be read at {at}, below {end}"
                    found.update(int(message.value()) for message in messages)
                    at = messages[-1].offset() + 1
        finally:
            consumer.close()
        return found

    def source(self, topic: str, **options: str) -> dict[str, Any]:
        address = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": topic}
        return {"format": "interrupted", "options": address | options, "select": ["value"]}

    def sink(self, topic: str) -> dict[str, Any]:
        return {"format": "interrupted", "options": {"kafka.bootstrap.servers": self.bootstrap, "topic": topic}}

    def files(self) -> dict[str, str]:
        return {"format": "parquet", "path": str(self.place / "rows")}

    def in_files(self) -> Counter[int]:
        return Counter(int(value) for value in topics.load(self.place / "rows")["value"].to_pylist())


@pytest.fixture
def scene(broker: BrokerProcess, tmp_path: Path) -> Scene:
    return Scene(broker, tmp_path)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_driver_dies_after_planning(scene: Scene, drivers: Drivers, start: str) -> None:
    """A batch was planned and is being read, nothing is committed: the next driver reads the same batch, once.

    With `latest`, what was the end when the query first ran is the beginning for ever, whatever came since.
    """
    topic = scene.topic()
    scene.produce(topic, range(-100, 0))
    source = scene.source(topic, startingOffsets=start, maxOffsetsPerTrigger="300")
    request = {"source": source, "sink": scene.files(), "checkpoint": str(scene.place / "checkpoint")}
    if start == "latest":
        drivers.session.ask("stream", **request)
    scene.produce(topic, range(500))
    drivers.order("stop read")
    drivers.session.send("stream", **request)
    drivers.met()
    drivers.kill()
    scene.produce(topic, range(500, 700))
    drivers.session.ask("stream", **request)
    told = range(700) if start == "latest" else range(-100, 700)
    assert scene.in_files() == Counter(told)


def test_driver_dies_before_the_commit(scene: Scene, drivers: Drivers) -> None:
    """A batch is in the sink, Spark does not know: it is written once more, and no other."""
    topic, copy = scene.topic(), scene.topic()
    scene.produce(topic, range(1000))
    source = scene.source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="400")
    request = {"source": source, "sink": scene.sink(copy), "checkpoint": str(scene.place / "checkpoint")}
    drivers.order("stop commit")
    drivers.session.send("stream", **request)
    drivers.met()
    written = scene.values(copy)
    drivers.kill()
    drivers.session.ask("stream", **request)
    assert len(written) == 400
    assert scene.values(copy) == Counter(range(1000)) + written


def test_task_dies_while_it_writes(scene: Scene, drivers: Drivers) -> None:
    """Spark runs the task again: nothing is missing, and only what the dead one had sent is there twice."""
    topic = scene.topic()
    drivers.order("die write")
    drivers.session.ask("copy", source={"rows": ROWS, "select": MADE}, sink=scene.sink(topic))
    drivers.met()
    found = scene.values(topic)
    assert set(found) == set(range(ROWS))
    twice = {number for number, times in found.items() if times > 1}
    assert max(found.values()) <= 2
    assert len(twice) < ROWS / 2, "one task of two, and not even all of it"
    assert max(twice, default=0) - min(twice, default=0) < ROWS / 2


def test_task_dies_while_it_reads(scene: Scene, drivers: Drivers) -> None:
    """Spark runs the task again, and its rows count once."""
    topic = scene.topic()
    scene.produce(topic, range(ROWS))
    drivers.order("die read")
    drivers.session.ask("copy", source=scene.source(topic), sink=scene.files())
    drivers.met()
    assert scene.in_files() == Counter(range(ROWS))
