"""Load on one topic by real clients while things break: writers, a reader, and the history they write."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from batches import read_rows
from broker_process import BrokerProcess
from history import History, PartitionOffset, Sent
from kafka_server import RawClient, error_of, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, find_leaders

PATIENT: dict[str, Any] = {
    "socket.timeout.ms": 10_000,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "log_level": 0,
}

# What a producer is answered while a server is away: it sends the same again.
AGAIN = {CODES[name] for name in ("NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR", "REQUEST_TIMED_OUT")}


def create_topic(bootstrap: str, topic: str, partitions: int, **configs: str) -> None:
    """A topic whose settings' dots are written as underscores.

    Asked for once: where the broker is slow, librdkafka asks again, and is told that there is such a topic.
    """

    async def scenario() -> None:
        async with connect(int(bootstrap.rpartition(":")[2])) as client:
            row = await client.create(topic, partitions, **configs)
            assert row["error_code"] == 0, row

    run(scenario)


def read_log(port: int, topic: str) -> dict[int, list[tuple[int, bytes]]]:
    """Every record that consumers may read, asked of the leaders this broker names: partition -> (offset, value)."""
    found: dict[int, list[tuple[int, bytes]]] = {}

    async def scenario() -> None:
        async with connect(port) as client:
            for index in range(len(await find_leaders(client, topic))):
                found[index] = await read_partition(client, topic, index)

    run(scenario)
    return found


async def read_partition(client: RawClient, topic: str, index: int) -> list[tuple[int, bytes]]:
    """(offset, value) of all that consumers may read, asked of the leaders whom `client` is told of, while they are."""
    found: list[tuple[int, bytes]] = []
    while True:
        leader = (await find_leaders(client, topic))[index]
        if leader != -1:
            async with connect(leader) as there:
                if await _read_on(there, topic, index, found):
                    return found
        await asyncio.sleep(0.02)  # another one is taking it over


async def _read_on(there: RawClient, topic: str, index: int, found: list[tuple[int, bytes]]) -> bool:
    """Append what comes after `found`, to the end; False if another broker leads, or comes to lead meanwhile."""
    while True:
        start = found[-1][0] + 1 if found else 0
        row = await there.fetch(topic, start, index=index)
        if error_of(row) == "NOT_LEADER_OR_FOLLOWER":
            return False
        assert row["error_code"] == 0, row
        page = [each for each in read_rows(row["records"]) if each[0] >= start]
        if not page:
            return True
        found += page


class LoadWriter(threading.Thread):
    """One that sends until told that it is `enough`; then it waits for its answers, unless that is `hopeless`."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.sent = 0
        self.acknowledged = 0
        self.enough = threading.Event()
        self.hopeless = threading.Event()


class Writer(LoadWriter):
    """Sends `name:0`, `name:1`, … to the partitions in turn, until told that it is enough."""

    def __init__(self, load: "Load", name: str, *, idempotent: bool, **settings: Any) -> None:
        super().__init__(name)
        self.load = load
        self.idempotent = idempotent
        config = {
            **PATIENT,
            "bootstrap.servers": load.bootstrap,
            "enable.idempotence": idempotent,
            "acks": "all",
            "linger.ms": 1,
            "batch.num.messages": 20,
            # A batch that is tried again where the leader has just gone may be overtaken by the next one, which goes to
            # the new leader. Told of the gap, librdkafka takes another epoch and stores again what is in doubt.
            "retry.backoff.ms": 100,
            "retry.backoff.max.ms": 100,
            "message.timeout.ms": 280_000,
        }
        self.producer = Producer(config | settings)

    def run(self) -> None:
        while not self.enough.is_set():
            self.send()
            self.producer.poll(0.002 if len(self.producer) < 100 else 0.05)
        while len(self.producer) and not self.hopeless.is_set():
            self.producer.poll(0.05)

    def send(self) -> None:
        value = Sent(self.name, self.sent)
        partition = self.sent % self.load.partitions
        self.sent += 1
        history = self.load.history
        history.note_sent(value, partition, once=self.idempotent)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acknowledged += 1
                offset = message.offset()  # none for what was stored long before
                history.note_acknowledged(value, (partition, -1 if offset is None else offset))
            else:
                history.note_refused(value, str(error))

        self.producer.produce(
            self.load.topic, f"{value.producer}:{value.number}", partition=partition, on_delivery=delivered
        )


class Reader(threading.Thread):
    """Reads all partitions from the beginning, and notes what it sees."""

    def __init__(self, load: "Load") -> None:
        super().__init__(name="reader", daemon=True)
        self.load = load
        self.last: dict[int, int] = {}  # partition -> offset
        self.high: dict[int, int] = {}  # partition -> high watermark
        self.errors: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        consumer = Consumer(
            {
                **PATIENT,
                "bootstrap.servers": self.load.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 20,
            }
        )
        consumer.assign([TopicPartition(self.load.topic, index, 0) for index in range(self.load.partitions)])
        while not self.enough.is_set():
            for message in consumer.consume(500, timeout=0.05):
                if message.error() is not None:
                    self.errors.append(str(message.error()))
                    continue
                self.load.history.note_read(self.name, (message.partition(), message.offset()), message.value())
                self.last[message.partition()] = message.offset()
            self._note_high_watermarks(consumer)
        consumer.close()

    def _note_high_watermarks(self, consumer: Consumer) -> None:
        """Those of the newest answers; none before the first."""
        for index in range(self.load.partitions):
            _, high = consumer.get_watermark_offsets(TopicPartition(self.load.topic, index), cached=True)
            if high >= 0 and high != self.high.get(index):
                self.high[index] = high
                self.load.history.note_high_watermark(self.name, index, high)

    def wait_until(self, last: dict[int, int], within: float = 240.0) -> None:
        """Until it has seen so much of each partition, or met an error."""
        deadline = time.monotonic() + within
        while not self.errors and any(self.last.get(partition, -1) < offset for partition, offset in last.items()):
            assert time.monotonic() < deadline, f"the consumer stands at {self.last}, not at {last}"
            time.sleep(0.005)


class Load:
    """Two idempotent writers, a plain one and a reader over one topic; `with` starts and ends them.

    `names`: of the writers, where they are to be others; "plain" is the one that is not idempotent.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str = "load",
        partitions: int = 2,
        names: Sequence[str] = ("one", "two", "plain"),
        **settings: Any,
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.history = History()
        self.settings = settings
        self.writers: list[LoadWriter] = [Writer(self, name, idempotent=name != "plain", **settings) for name in names]
        self.reader = Reader(self)

    def count_acknowledged(self) -> int:
        """Of all writers together."""
        return sum(writer.acknowledged for writer in self.writers)

    def wait_for(self, more: int = 100, within: float = 240.0) -> None:
        """Until every writer has so many more acknowledged."""
        targets = [writer.acknowledged + more for writer in self.writers]
        deadline = time.monotonic() + within
        while any(writer.acknowledged < target for writer, target in zip(self.writers, targets, strict=True)):
            done = {
                writer.name: writer.acknowledged - target for writer, target in zip(self.writers, targets, strict=True)
            }
            ended = [writer.name for writer in self.writers if not writer.is_alive()]
            assert not ended, f"these producers have given up: {ended}"
            assert time.monotonic() < deadline, f"the producers make no progress: {done}"
            time.sleep(0.005)

    def add_writer(self, name: str) -> None:
        """One more, idempotent, while it runs: the others may have as much on its way as they ever send."""
        self.writers.append(Writer(self, name, idempotent=True, **self.settings))
        self.writers[-1].start()

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Until the block ends; then all that was sent is acknowledged or refused, and read."""
        for thread in (*self.writers, self.reader):
            thread.start()
        try:
            yield self
        except BaseException:
            for writer in self.writers:
                writer.hopeless.set()
            raise
        finally:
            for writer in self.writers:
                writer.enough.set()
            for writer in self.writers:
                writer.join(280)
            try:
                if not self.writers[0].hopeless.is_set():
                    self.reader.wait_until(self.history.last_acknowledged())
            finally:
                self.reader.enough.set()
                self.reader.join(120)

    def check(self, port: int, may_lose: Callable[[], Iterable[PartitionOffset]] = tuple) -> set[Sent]:
        """The history against what the broker on this port has; nothing was refused. Returns what was lost.

        `may_lose`: places that it has told to be lost; asked when all is read, as it tells before it answers.
        """
        assert not self.history.refused, list(self.history.refused.items())[:3]
        log = read_log(port, self.topic)
        lost = self.history.check(log, may_lose=may_lose())
        assert not self.reader.errors, self.reader.errors[:3]
        return lost


@contextmanager
def at_work(broker: BrokerProcess, topic: str = "load", **configs: str) -> Iterator[Load]:
    """Clients of a topic of their own, who go on before, while and after the block does harm, and lose nothing by it.

    `configs`: of the topic, as in `create_topic`.
    """
    create_topic(broker.bootstrap, topic, 2, **configs)
    load = Load(broker.bootstrap, topic)
    with load.running():
        load.wait_for(20)
        yield load
        load.wait_for(20)
    assert load.check(broker.port) == set()
