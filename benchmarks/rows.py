"""What is measured, as a table: loads, the figures taken from each, what is compared, and what must be reached."""

from dataclasses import dataclass

Figures = dict[str, float]

# Who can take part. A Redis server brings two of ours over it, one for each layout, and itself without a broker.
PEERS = ("kafka", "embedded", "redis", "bare")
COLUMNS = {
    "kafka": "Kafka",
    "embedded": "Embedded",
    "entries": "Entries",
    "raw entries": "Raw entries",
    "batches": "Batches",
    "raw batches": "Raw batches",
    "bare": "Bare loop",
}


@dataclass(frozen=True)
class Target:
    """What must be reached: `at_least` or `at_most` times the other's figure, or `below` in the figure's own unit."""

    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g} x"
        return f"≤ {self.at_most:g} x" if self.at_most is not None else f"< {self.below:g}"

    def reached(self, figure: float, ratio: float) -> bool:
        """Whether the figure, or its ratio to the other's, is good enough."""
        if self.at_least is not None:
            return ratio >= self.at_least
        return ratio <= self.at_most if self.at_most is not None else figure < (self.below or 0)


@dataclass(frozen=True)
class Ratio:
    """One column's figure divided by another's. `field`: of the other, if it is not the same figure."""

    of: str
    to: str
    target: Target | None = None
    field: str = ""

    def __str__(self) -> str:
        return f"{COLUMNS[self.of]} / {'one producer' if self.of == self.to else COLUMNS[self.to]}"


@dataclass(frozen=True)
class Figure:
    """One line of the printed table: a field of the generator's answer."""

    field: str
    unit: str
    ratios: tuple[Ratio, ...] = ()


@dataclass(frozen=True)
class Load:
    """One run of the generator against each of `peers`, in a topic made for it.

    `fill`: produce this before a fetch. `alone`: measure once more with these arguments as well; those figures are
    called alone_... `always`: the Redis server flushes before it answers. `durability`: of our topics; Kafka never
    waits for the disk by default.
    """

    title: str
    arguments: tuple[str, ...]
    figures: tuple[Figure, ...]
    mode: str = "produce"
    durability: str = "written"
    fill: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("kafka", "embedded", "redis")
    always: bool = False

    def meant_by(self, words: str) -> bool:
        """Whether the words are in the title, or name a peer that takes part; all are meant by none."""
        return words in self.title or words in self.peers


def _against_kafka(target: Target | None = None) -> Ratio:
    return Ratio("embedded", "kafka", target)


_RAW = (Ratio("entries", "raw entries", Target(at_least=0.9)), Ratio("batches", "raw batches", Target(at_least=0.85)))
_RAW_AS_IT_IS = tuple(Ratio(ratio.of, ratio.to) for ratio in _RAW)


def _produce(batch: int, record: int, *ratios: Ratio, connections: int = 1) -> Load:
    arguments = ("--batch-bytes", str(batch * 1024), "--record-bytes", str(record), "--connections", str(connections))
    title = f"produce {batch} KB of {record} B, acks=1, {connections} connection{'s' * (connections > 1)}"
    return Load(title, arguments, (Figure("mb_per_s", "MB/s", ratios),), peers=PEERS)


def _fetch(batch: int, record: int, *ratios: Ratio, connections: int = 1) -> Load:
    shape = ("--batch-bytes", str(batch * 1024), "--record-bytes", str(record), "--connections", str(connections))
    return Load(
        f"fetch 1 MB, batches of {batch} KB, {record} B" + f", {connections} connections" * (connections > 1),
        (*shape, "--max-bytes", "1048576"),
        (Figure("mb_per_s", "MB/s", ratios),),
        mode="fetch",
        fill=(*shape, "--seconds", "1"),
    )


_ONE = ("--record-bytes", "200", "--batch-bytes", "1", "--in-flight", "1")
_TWICE = _against_kafka(Target(at_least=2))
_AS_FAST = _against_kafka(Target(at_least=1))
_EIGHTFOLD = Target(at_least=8)

LOADS = (
    _produce(16, 100, _TWICE, *_RAW),
    _produce(16, 1024, _TWICE, *_RAW),
    _produce(64, 100, _TWICE, *_RAW),
    _produce(64, 1024, _TWICE, *_RAW),
    _produce(64, 1024, _against_kafka(), *_RAW_AS_IT_IS, connections=4),
    _fetch(16, 1024, _AS_FAST, *_RAW),
    _fetch(64, 100, _AS_FAST, *_RAW),
    _fetch(64, 1024, _AS_FAST, *_RAW),
    _fetch(64, 1024, _against_kafka(), *_RAW_AS_IT_IS, connections=4),
    Load(
        "one 200 B produce at a time, acks=1",
        _ONE,
        (
            Figure("p50_us", "µs p50", (_against_kafka(Target(at_most=0.75)), *_RAW_AS_IT_IS)),
            Figure("p99_us", "µs p99", (_against_kafka(),)),
            Figure("p999_us", "µs p99.9", (_against_kafka(),)),
        ),
        peers=PEERS,
    ),
    Load(
        "produce 64 KB of 1024 B, acks=all: ours fsynced, Kafka not",
        ("--batch-bytes", "65536", "--record-bytes", "1024", "--acks", "-1"),
        (Figure("mb_per_s", "MB/s", (_AS_FAST, *_RAW_AS_IT_IS)),),
        durability="fsync",
        always=True,
    ),
    Load(
        "16 producers of one 200 B at a time, acks=all: ours fsynced, Kafka not",
        (*_ONE, "--acks", "-1", "--connections", "16"),
        (
            Figure("alone_requests_per_s", "produces/s of one"),
            Figure(
                "requests_per_s",
                "produces/s of 16",
                (
                    Ratio("embedded", "embedded", field="alone_requests_per_s"),
                    Ratio("entries", "entries", _EIGHTFOLD, "alone_requests_per_s"),
                    Ratio("batches", "batches", _EIGHTFOLD, "alone_requests_per_s"),
                ),
            ),
        ),
        durability="fsync",
        alone=(*_ONE, "--acks", "-1"),
        always=True,
    ),
    Load(
        "2,000 idle connections beside one 200 B produce at a time",
        (*_ONE, "--idle", "2000"),
        (
            Figure("p50_us", "µs p50", (_against_kafka(),)),
            Figure("p99_us", "µs p99", (_against_kafka(),)),
            Figure("broker_rss_mb", "MB resident", (_against_kafka(),)),
        ),
        peers=("kafka", "embedded"),
    ),
)

PARTITIONS = 10_000
MANY_PARTITIONS = Load(
    "10,000 partitions in turn, one 200 B produce at a time",
    (*_ONE, "--partitions", str(PARTITIONS)),
    (
        Figure("create_seconds", "s to create", (_against_kafka(),)),
        Figure("p50_us", "µs p50", (_against_kafka(),)),
        Figure("p99_us", "µs p99", (_against_kafka(),)),
        Figure("broker_rss_mb", "MB resident", (_against_kafka(),)),
    ),
    peers=("kafka", "embedded"),
)

START = Load(
    "started on an empty directory",
    (),
    (
        Figure("ready_seconds", "s to ready", (_against_kafka(Target(below=0.5)),)),
        Figure("idle_mb", "MB resident, idle", (_against_kafka(Target(below=80)),)),
    ),
    mode="start",
    peers=("kafka", "embedded", "bare"),
)
