"""Who is measured: a broker in a topic of its own, or Redis itself. One column of the printed table each."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, count, starmap
from pathlib import Path
from typing import Protocol

from benchmarks import generator, java
from benchmarks.peers.bare import Bare
from benchmarks.peers.kafka.broker import Kafka
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import Peer, PeerError
from benchmarks.peers.redis import Redis
from benchmarks.peers.relay import Relay
from benchmarks.peers.workers import WORKERS, Worker, Workers
from benchmarks.rows import OVER_REDIS, Figures, Load

LAYOUTS = ("entries", "batches")
GAPS = ("--offsets", "gaps")  # those of stream entries have
SHARED = ("--connections", "--megabytes", "--per-request")  # of a load, which every worker has its share of
SUMS = ("requests_per_s", "records_per_s", "mb_per_s", "broker_cpu")  # figures of all workers together
RAW_MODES = {"produce": "redis-add", "fetch": "redis-range"}


Observer = Callable[[], AbstractContextManager[object]]


class Contestant(Protocol):
    """A system that `system.py` measures in turns with others."""

    peer: Peer

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        """One run: the generator's figures. `observer`: entered while it is measured.

        Raises PeerError when an answer was wrong.
        """


def _run(peer: Peer, mode: str, load: Load, seconds: float, *arguments: str, topic: str = "t") -> Figures:
    if load.java:
        records, size = load.java
        if mode == "end-to-end":
            return java.end_to_end(peer, "t", records, size)
        return java.produce(peer, "t", records, size) | java.consume(peer, "t", records)
    timed = ("--seconds", str(seconds), "--warm-up", str(seconds / 2), *arguments)
    figures = generator.load(peer, mode, topic, *load.arguments, *timed)
    if load.alone:
        alone = generator.load(peer, mode, topic, *load.alone, *timed)
        figures |= {f"alone_{field}": value for field, value in alone.items()}
    return figures


class Broker:
    """A broker that speaks Kafka. `settings`: of its topics, beside how durable ours are."""

    def __init__(self, peer: Peer, *settings: str) -> None:
        self.peer = peer
        self._settings = settings
        self._filled: Load | None = None  # whose topic is there

    def create(self, load: Load) -> Figures:
        """Make the topic."""
        ours = [f"durability={load.durability}"] if isinstance(self.peer, Korvet) else []
        configs = [word for setting in (*ours, *self._settings) for word in ("--config", setting)]
        return generator.load(self.peer, "create", "t", "--partitions", str(load.partitions), *configs)

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        if self._filled != load:
            self._clear()
            self.create(load)
            self._filled = load
            if load.fill:
                generator.load(self.peer, "produce", "t", *load.fill)
        with observer():
            figures = _run(self.peer, load.mode, load, seconds)
        if not load.kept:
            self._clear()
        return figures

    def _clear(self) -> None:
        if self._filled is not None:
            generator.load(self.peer, "delete", "t")
            self._filled = None


def share(arguments: tuple[str, ...], among: int) -> tuple[str, ...]:
    """The generator's arguments for one of so many workers; of what cannot be divided each has one."""
    before = (None, *arguments)
    return tuple(
        str(max(1, int(word) // among)) if name in SHARED else word
        for name, word in zip(before, arguments, strict=False)
    )


class TwoWorkers:
    """Workers over one directory: each has its share of the connections, which send to what it leads."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.peer: Peer = workers.workers[0]  # whose loop is looked into
        self._filled: Load | None = None  # whose topics are there
        self._topics: dict[str, dict[Worker, list[int]]] = {}  # the partitions that each leads

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        if self._filled != load:
            self._clear()
            self._create(load)
            self._filled = load
            if load.fill:
                fill = share(load.fill, WORKERS)
                self._run_all(lambda worker, topic, led: generator.load(worker, "produce", topic, *fill, *led))
        part = replace(load, arguments=share(load.arguments, WORKERS))
        with observer():
            measured = self._run_all(
                lambda worker, topic, led: _run(worker, part.mode, part, seconds, *led, topic=topic)
            )
        if not load.kept:
            self._clear()
        total = {field: sum(figures[field] for figures in measured) for field in SUMS}
        used = 1000 * total["broker_cpu"] / total["mb_per_s"]
        return {**total, "broker_cpu_s_per_gb": used, "server_cpu_s_per_gb": used}

    def _create(self, load: Load) -> None:
        """Make topics until each worker leads a partition: which of them leads a single one is by chance."""
        names = map("t{}".format, count())
        while len(set(chain(*self._topics.values()))) < WORKERS:
            name = next(names)
            self._topics[name] = self._workers.create(name, load.partitions, [("durability", load.durability)])

    def _run_all(self, work: Callable[[Worker, str, Sequence[str]], Figures]) -> list[Figures]:
        """Do this with each worker and the first topic of which it leads partitions, side by side.

        The third is which partitions, as an argument for the generator.
        """
        first = {worker: name for name, led in reversed(self._topics.items()) for worker in led}
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(work, first.keys(), first.values(), starmap(self._tell_led, first.items())))

    def _tell_led(self, worker: Worker, topic: str) -> tuple[str, ...]:
        return "--numbers", ",".join(map(str, self._topics[topic][worker]))

    def _clear(self) -> None:
        for name, led in self._topics.items():
            generator.load(next(iter(led)), "delete", name)
        self._topics.clear()
        self._filled = None


class Copier:
    """No broker in between: the generator's own copy through a file. Everything else is the bare loop's."""

    def __init__(self, loop: Broker) -> None:
        self._loop = loop
        self.peer = loop.peer

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        if load.mode == "pipe":
            with observer():
                return _run(self.peer, "copy", load, seconds)
        return self._loop.measure(load, seconds, observer)


class OverRedis:
    """A broker or a relay over Redis, its topic in one layout. That nothing was lost or doubled is counted in Redis."""

    def __init__(self, broker: Korvet | Relay, redis: Redis, layout: str) -> None:
        self.peer: Peer = broker
        self._broker = Broker(broker, f"storage.layout={layout}")
        self._redis = redis
        self._counted = {"entries": "accepted_records", "batches": "accepted"}[layout]

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        peer = self.peer
        self._broker.create(load)
        produced = [generator.load(peer, "produce", "t", *load.fill, *GAPS)] if load.fill else []
        with observer():
            figures = _run(peer, load.mode, load, seconds, *GAPS)
        if load.mode == "produce":
            produced.append(figures)
        expected = sum(each.get(alone + self._counted, 0) for each in produced for alone in ("", "alone_"))
        if (found := self._redis.count("korvet:t:0")) != expected:
            raise PeerError(f"{load.title}: {expected:.0f} entries were accepted, Redis holds {found}")
        generator.load(peer, "delete", "t")
        self._redis.settle()
        return figures


class Raw:
    """Redis without a broker: the same records as plain XADDs and XRANGEs."""

    def __init__(self, redis: Redis, layout: str) -> None:
        self.peer: Peer = redis
        self._redis = redis
        self._layout = ("--layout", layout)

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        if load.fill:
            generator.load(self._redis, RAW_MODES["produce"], "t", *load.fill, *self._layout)
        with observer():
            figures = _run(self._redis, RAW_MODES[load.mode], load, seconds, *self._layout)
        self._redis.settle()
        return figures


class Field:
    """All who take part in a run, started when needed and living through it."""

    def __init__(self, running: ExitStack, peers: list[str], directory: Path, redis_server: str) -> None:
        self._running = running
        self._peers = peers
        self._directory = directory
        self._redis_server = redis_server
        self._started: dict[str, dict[str, Contestant]] = {}

    def of(self, load: Load) -> dict[str, Contestant]:
        """The load's columns, those next to each other that are compared."""
        found: dict[str, Contestant] = {}
        for peer in self._peers:
            if peer in load.peers:
                name = f"{peer}-always" if peer in OVER_REDIS and load.always else peer
                if name not in self._started:
                    self._started[name] = self._start(name)
                found |= self._started[name]
        return found

    def _start(self, name: str) -> dict[str, Contestant]:
        if name == "workers":
            workers = self._running.enter_context(Workers(self._directory / name, *LIKE_KAFKA))
            return {name: TwoWorkers(workers)}
        if name.startswith(OVER_REDIS):
            return self._start_over_redis(name)
        broker = self._running.enter_context(alone(name, self._directory))
        return {name: Copier(broker) if name == "bare" else broker}

    def _start_over_redis(self, name: str) -> dict[str, Contestant]:
        directory = self._directory / name
        redis = Redis(directory, always=name.endswith("always"), program=self._redis_server)
        self._running.enter_context(redis)
        if name.startswith("raw"):
            return {f"raw {layout}": Raw(redis, layout) for layout in LAYOUTS}
        if name.startswith("relay"):
            way = name.removeprefix("relay-")
            relay = self._running.enter_context(Relay(directory / "relay", redis, way))
            return {name: OverRedis(relay, redis, "entries" if way == "c" else "batches")}
        korvet = self._running.enter_context(Korvet(directory / "broker", redis=redis))
        return {layout: OverRedis(korvet, redis, layout) for layout in LAYOUTS}


# As it is with Kafka here: groups of one form at once, and all connections may come from one address.
LIKE_KAFKA = ("group.initial.rebalance.delay.ms=0", "max.connections.per.ip=10000")
ALONE: dict[str, Callable[[Path], Peer]] = {
    "kafka": Kafka,
    "embedded": lambda directory: Korvet(directory, *LIKE_KAFKA),
    "bare": Bare,
}


@contextmanager
def alone(name: str, directory: Path) -> Iterator[Broker]:
    """One broker, started on a directory where nothing is yet."""
    with ALONE[name](directory / name) as peer:
        yield Broker(peer)
