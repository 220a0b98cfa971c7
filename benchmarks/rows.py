"""Rows of the table: a load, the figures taken from it, the comparison, and the target."""

from dataclasses import dataclass, replace

Figures = dict[str, float]

# Who can take part. `redis` brings two of ours over it, one for each layout, and `raw` the same without a broker.
OVER_REDIS = ("redis", "relay-a", "relay-bpv", "relay-c", "raw")  # each has a Redis server of its own
PEERS = ("kafka", "embedded", "workers", *OVER_REDIS, "bare")
COLUMNS = {
    "kafka": "Kafka",
    "embedded": "Embedded",
    "workers": "2 workers",
    "entries": "Entries",
    "relay-c": "Relay C",
    "raw entries": "Raw entries",
    "batches": "Batches",
    "relay-a": "Relay A",
    "relay-bpv": "Relay Bpv",
    "raw batches": "Raw batches",
    "bare": "Bare loop",
}


@dataclass(frozen=True)
class Target:
    """The target: `at_least` or `at_most` times the other's figure, or `below` in the figure's own unit."""

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

    `fill`: produce this before it is measured. `kept`: a broker's topic serves every round, as it takes long to make
    and the rounds do not change it much. `alone`: measure once more with these arguments as well; those figures
    are called alone_... `always`: the Redis server flushes before it answers. `durability`: of our topics; Kafka never
    waits for the disk by default. `partitions`: of the topic. `share`: of the requests a second that Kafka answers at
    most, sent when they are due. `java`: records and their bytes for Kafka's own tools, which then do the measuring.
    """

    title: str
    arguments: tuple[str, ...]
    figures: tuple[Figure, ...]
    mode: str = "produce"
    durability: str = "written"
    fill: tuple[str, ...] = ()
    kept: bool = False
    alone: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("kafka", "embedded", "redis")
    always: bool = False
    partitions: int = 1
    share: float = 0.0
    java: tuple[int, int] | None = None

    def meant_by(self, words: str) -> bool:
        """Whether the words are in the title, or name a peer that takes part; all are meant by none."""
        return words in self.title or words in self.peers

    def paced(self, per_second: float) -> "Load":
        """The same load at this many requests a second."""
        return replace(self, arguments=(*self.arguments, "--rate", f"{per_second:.1f}"))
