"""Who takes part: two sessions of Spark, three brokers. A column is one session's connector at one broker."""

import itertools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.peers.kafka.broker import Kafka
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import Peer, PeerError, free_ports
from benchmarks.peers.spark import environment
from benchmarks.peers.spark.session import Session, open_session
from benchmarks.spark.rows import MADE, OURS, PARTITIONS, THEIRS, Query

PATIENCE = 900.0
FORMATS = {THEIRS: "kafka", OURS: "korvet"}
FULL = "rows"  # the topic that is read
HEAP = {"spark.driver.memory": "4g"}


class Discard(Peer):
    """`with Discard(directory) as broker:` answers on a free port."""

    name = "a broker that discards"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, free_ports(1)[0])

    def command(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("discard.py")), str(self.port)]


class Figures(NamedTuple):
    """The figures of one query: M rows/s, and CPU seconds per M rows of Spark with its Python, and of the broker."""

    rate: float
    cpu: float
    broker_cpu: float


class Field:
    """All of them, running. `rows`: how many the topic FULL holds in each broker, written by Spark's own connector."""

    def __init__(self, sessions: dict[str, Session], brokers: dict[str, Peer], place: Path, rows: int) -> None:
        self.sessions = sessions
        self.brokers = brokers
        self.place = place
        self.rows = rows
        self._numbers = itertools.count()

    def fill(self, brokers: set[str]) -> None:
        """All of these get the same: batches as Spark's own connector makes them."""
        for name in sorted(brokers - {"discard"}):
            create(self.brokers[name], FULL)
            self._write(self.sessions[THEIRS], "kafka", self.brokers[name], FULL, self.rows)

    def measure(self, query: Query, column: str, share: float = 1.0) -> Figures:
        """One query over all rows, or over a share of them. Raises PeerError when rows are missing afterwards."""
        who, where = column.split()
        session, broker = self.sessions[who], self.brokers[where]
        rows = int(self.rows * share)
        before, broker_before = cpu_seconds(session.family()), cpu_seconds(broker_family(broker))
        if query.writes:
            seconds = self._write_anew(session, FORMATS[who], broker, rows)
        else:
            seconds = self._read(session, FORMATS[who], broker, query, rows)
        used = cpu_seconds(session.family()) - before
        broker_used = cpu_seconds(broker_family(broker)) - broker_before
        millions = rows / 1e6
        return Figures(millions / seconds, used / millions, broker_used / millions)

    def _read(self, session: Session, format_: str, broker: Peer, query: Query, rows: int) -> float:
        options = {"kafka.bootstrap.servers": broker.address, "subscribe": FULL, "startingOffsets": "earliest"}
        checkpoint = str(self.place / f"checkpoint-{next(self._numbers)}")
        request: dict[str, Any] = {"source": {"format": format_, "options": options}, "checkpoint": checkpoint}
        if query.verb == "copy" and rows < self.rows:
            ends = ",".join(f'"{partition}":{rows // PARTITIONS}' for partition in range(PARTITIONS))
            options["endingOffsets"] = f'{{"{FULL}":{{{ends}}}}}'
        answer = session.ask(query.verb, within=PATIENCE, sink={"format": "noop", "mode": "overwrite"}, **request)
        if query.verb == "stream":
            found = sum(batch["numInputRows"] for batch in answer["batches"])
            if found != self.rows:
                raise PeerError(f"{broker.name}: a stream of {self.rows} rows gave {found}")
        return float(answer["seconds"])

    def _write_anew(self, session: Session, format_: str, broker: Peer, rows: int) -> float:
        topic = f"w{next(self._numbers)}"
        if isinstance(broker, Discard):
            return self._write(session, format_, broker, topic, rows)
        create(broker, topic)
        seconds = self._write(session, format_, broker, topic, rows)
        if (found := count(broker, topic)) != rows:
            raise PeerError(f"{broker.name}: {rows} rows were written, the topic holds {found}")
        client = admin(broker)
        client.delete_topics([topic])[topic].result(60)
        return seconds

    def _write(self, session: Session, format_: str, broker: Peer, topic: str, rows: int) -> float:
        source = {"rows": rows, "partitions": PARTITIONS, "select": MADE}
        options = {"kafka.bootstrap.servers": broker.address, "topic": topic}
        answer = session.ask("copy", within=PATIENCE, source=source, sink={"format": format_, "options": options})
        return float(answer["seconds"])


def create(broker: Peer, topic: str) -> None:
    """Make a topic. Kafka never waits for the disk by default; so that both do the same, neither do ours."""
    config = {"durability": "written"} if isinstance(broker, Korvet) else {}
    client = admin(broker)
    client.create_topics([NewTopic(topic, PARTITIONS, 1, config=config)])[topic].result(60)


def admin(broker: Peer) -> AdminClient:
    """A client for topics, silent about its own end."""
    return AdminClient({"bootstrap.servers": broker.address, "log_level": 5})


def count(broker: Peer, topic: str) -> int:
    """How many records a topic without gaps holds."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "count"})
    try:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        bounds = [consumer.get_watermark_offsets(place, 60) for place in places]
    finally:
        consumer.close()
    return sum(end - start for start, end in bounds)


def broker_family(broker: Peer) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in broker.pids]


def cpu_seconds(family: list[psutil.Process]) -> float:
    """CPU seconds from the kernel's process accounting, with those of children that have ended."""
    used = 0.0
    for each in family:
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue  # a Python worker that ended just now: its parent has its time
        used += times.user + times.system + times.children_user + times.children_system
    return used


@contextmanager
def open_field(rows: int) -> Iterator[Field]:
    """Everything started; on the project's disk, as /tmp may be memory."""
    environment.CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-spark-", dir=environment.CACHE) as name, ExitStack() as running:
        place = Path(name)
        kinds: dict[str, type[Kafka] | type[Korvet] | type[Discard]]
        kinds = {"kafka": Kafka, "embedded": Korvet, "discard": Discard}
        brokers: dict[str, Peer] = {name: running.enter_context(kind(place / name)) for name, kind in kinds.items()}
        theirs = environment.python(environment.connector_version())
        conf = environment.connector_conf() | HEAP
        sessions = {THEIRS: running.enter_context(open_session(theirs, conf=conf))}
        sessions[OURS] = running.enter_context(open_session(Path(sys.executable), korvet=True, conf=HEAP))
        yield Field(sessions, brokers, place, rows)
