"""The measurements as a table: the queries, the contestants, and the targets.

Targets are in M rows/s, and in times what Spark's own connector reaches against Apache Kafka in the same run.
"""

from dataclasses import dataclass

THEIRS, OURS = "connector", "korvet"  # sessions
COLUMNS = {
    "connector kafka": "Connector, Kafka",
    "connector embedded": "Connector, Embedded",
    "korvet kafka": "korvet, Kafka",
    "korvet embedded": "korvet, Embedded",
}
BASE, MEANT = "connector kafka", "korvet embedded"  # ratios are one by the other, and targets are the second's

# A record of 16 bytes of key and 100 of value: 154 bytes as a row in Arrow with the source's columns but headers. Made
# for as little as Spark can: padding a number to 100 characters costs more than writing it.
MADE = (
    "cast(cast(id + 1000000000000000 as string) as binary) as key",
    "cast(repeat('v', 100) as binary) as value",
)
PARTITIONS = 2


@dataclass(frozen=True)
class Query:
    """`verb`: of the session's program. `writes`: from generated rows to a topic of its own; else from the topic to
    nothing. `columns`: who takes part, by session and broker. `rate`: M rows/s to be reached, `times` the connector's
    against Kafka; `cpu`: CPU seconds per M rows at most.
    """

    title: str
    verb: str
    writes: bool
    columns: tuple[str, ...]
    rate: float
    times: float | None
    cpu: float | None = None


EVERYONE = tuple(COLUMNS)
QUERIES = (
    Query("read", "copy", False, EVERYONE, rate=2.0, times=2.2, cpu=0.9),
    Query("stream, AvailableNow", "stream", False, EVERYONE, rate=1.4, times=1.7),
    Query("write", "copy", True, EVERYONE, rate=0.0, times=4.0),
    Query("write, broker discards", "copy", True, ("connector discard", "korvet discard"), rate=2.3, times=None),
)
