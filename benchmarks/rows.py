"""What is measured, as a table: one load each, and the figures taken from it. Targets are the project's promises."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What ours must reach: `at_least` or `at_most` times Kafka's figure, or `below` in the figure's own unit."""

    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g} x"
        return f"≤ {self.at_most:g} x" if self.at_most is not None else f"< {self.below:g}"

    def reached(self, ours: float, ratio: float) -> bool:
        """Whether ours, or its ratio to Kafka's, is good enough."""
        if self.at_least is not None:
            return ratio >= self.at_least
        return ratio <= self.at_most if self.at_most is not None else ours < (self.below or 0)


@dataclass(frozen=True)
class Figure:
    """One line of the printed table: a field of the generator's answer."""

    field: str
    unit: str
    target: Target | None = None


@dataclass(frozen=True)
class Load:
    """One run of the generator against each broker, in a topic made for it. `fill`: produce this before a fetch."""

    title: str
    arguments: tuple[str, ...]
    figures: tuple[Figure, ...]
    mode: str = "produce"
    durability: str = "written"  # ours only; Kafka never waits for the disk by default
    fill: tuple[str, ...] = ()
    bare: bool = False


def _produce(batch: int, record: int, target: Target | None = None, connections: int = 1) -> Load:
    arguments = ("--batch-bytes", str(batch * 1024), "--record-bytes", str(record), "--connections", str(connections))
    title = f"produce {batch} KB of {record} B, acks=1, {connections} connection{'s' * (connections > 1)}"
    return Load(title, arguments, (Figure("mb_per_s", "MB/s", target),), bare=True)


def _fetch(record: int) -> Load:
    fill = ("--batch-bytes", "65536", "--record-bytes", str(record), "--seconds", "1")
    return Load(
        f"fetch 1 MB, batches of 64 KB, {record} B",
        ("--max-bytes", "1048576"),
        (Figure("mb_per_s", "MB/s", Target(at_least=1)),),
        mode="fetch",
        fill=fill,
    )


_ONE = ("--record-bytes", "200", "--batch-bytes", "1", "--in-flight", "1")
_TWICE = Target(at_least=2)

LOADS = (
    _produce(16, 100, _TWICE),
    _produce(16, 1024, _TWICE),
    _produce(64, 100, _TWICE),
    _produce(64, 1024, _TWICE),
    _produce(64, 1024, connections=4),
    _fetch(100),
    _fetch(1024),
    Load(
        "one 200 B produce at a time, acks=1",
        _ONE,
        (Figure("p50_us", "µs p50", Target(at_most=0.75)), Figure("p99_us", "µs p99"), Figure("p999_us", "µs p99.9")),
        bare=True,
    ),
    Load(
        "produce 64 KB of 1024 B, acks=all: ours fsynced, Kafka not",
        ("--batch-bytes", "65536", "--record-bytes", "1024", "--acks", "-1"),
        (Figure("mb_per_s", "MB/s", Target(at_least=1)),),
        durability="fsync",
    ),
    Load(
        "2,000 idle connections beside one 200 B produce at a time",
        (*_ONE, "--idle", "2000"),
        (Figure("p50_us", "µs p50"), Figure("p99_us", "µs p99"), Figure("broker_rss_mb", "MB resident")),
    ),
)

PARTITIONS = 10_000
MANY_PARTITIONS = Load(
    "10,000 partitions in turn, one 200 B produce at a time",
    (*_ONE, "--partitions", str(PARTITIONS)),
    (
        Figure("create_seconds", "s to create"),
        Figure("p50_us", "µs p50"),
        Figure("p99_us", "µs p99"),
        Figure("broker_rss_mb", "MB resident"),
    ),
)

START = Load(
    "started on an empty directory",
    (),
    (
        Figure("ready_seconds", "s to ready", Target(below=0.5)),
        Figure("idle_mb", "MB resident, idle", Target(below=80)),
    ),
    mode="start",
    bare=True,
)
