"""Programs over Kafka, as processes that are killed and started again, and the topics that a test looks into."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from compat.drivers import command

PATIENCE = 200.0  # seconds: a Java program on a busy machine starts slowly
KEYS = (b"ada", b"bob")


class Program:
    """A program of PROGRAMS (compat.drivers): its arguments, and a file with all that it says."""

    def __init__(self, name: str, log: Path, *arguments: str) -> None:
        self._command, self._place = command(name, *arguments)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            environment = os.environ | {"PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(
                self._command, cwd=self._place, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """kill -9: nothing is committed, nothing is said."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def until(self, what: Callable[[], bool]) -> None:
        """Wait until it is so, while the program lives."""
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert self._process is not None
            ended = self._process.poll()
            assert ended is None, f"the program has ended with {ended}:\n{self.said()}"
            assert time.monotonic() < deadline, f"it did not come in time:\n{self.said()}"
            time.sleep(0.3)

    def times(self, words: str) -> int:
        """How often it has said this, since it was first started."""
        return self._log.read_text(errors="replace").count(words)

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-6000:]


@contextmanager
def running(name: str, log: Path, *arguments: str) -> Iterator[Program]:
    """The program, killed when the block ends."""
    program = Program(name, log, *arguments)
    program.start()
    try:
        yield program
    finally:
        program.kill()


class Topics:
    """The topics of one broker, each of a single partition, as a client sees them that is no part of the program."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._time = int(time.time() * 1000)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    def create(self, *topics: str) -> None:
        for created in self._admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
            created.result(30)

    def feed(self, topic: str, numbers: range) -> None:
        """For each number a record of each of KEYS, all of one time, so that they fall into one window."""
        refused: list[KafkaError] = []
        for number in numbers:
            for key in KEYS:
                self._producer.produce(
                    topic,
                    b"%d" % number,
                    key,
                    timestamp=self._time,
                    on_delivery=lambda error, _: refused.append(error) if error is not None else None,
                )
        assert self._producer.flush(60) == 0
        assert refused == []

    def records(self, topic: str, offset: int = 0) -> list[Message]:
        """All committed records from this offset to the end there is; none of a topic that does not exist yet."""
        with self._consumer("unused") as consumer:
            if topic not in consumer.list_topics(timeout=30).topics:
                return []
            consumer.assign([TopicPartition(topic, 0, offset)])
            found = []
            deadline = time.monotonic() + 60
            while True:
                message = consumer.poll(1.0)
                assert time.monotonic() < deadline, f"{topic} has no end"
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise AssertionError(error)

    def values(self, topic: str) -> list[bytes]:
        return [message.value() or b"" for message in self.records(topic)]

    def counts(self, topic: str, kind: bytes) -> dict[bytes, list[int]]:
        """The counts of each of KEYS, as they came, among the records `kind count`."""
        found: dict[bytes, list[int]] = {key: [] for key in KEYS}
        for message in self.records(topic):
            said, _, count = (message.value() or b"").partition(b" ")
            if said == kind:
                found[message.key() or b""].append(int(count))
        return found

    def commit(self, group: str, topic: str, offset: int) -> None:
        with self._consumer(group) as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)

    def committed(self, group: str, topic: str) -> int:
        """-1001 where there is none."""
        with self._consumer(group) as consumer:
            (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        return int(place.offset)

    def all_committed(self, group: str, topic: str) -> bool:
        """Whether the group has committed the end of the topic."""
        with self._consumer(group) as consumer:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        return int(place.offset) >= end

    def setting(self, topic: str, name: str) -> str:
        asked = ConfigResource(ResourceType.TOPIC, topic)
        return str(self._admin.describe_configs([asked])[asked].result(30)[name].value)

    @contextmanager
    def _consumer(self, group: str) -> Iterator[Consumer]:
        settings = {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "auto.offset.reset": "earliest", **settings})
        try:
            yield consumer
        finally:
            consumer.close()
