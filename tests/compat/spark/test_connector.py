"""Spark's own connector, `format("kafka")`, unmodified, against our broker over every store."""

from uuid import uuid4

import pytest

from benchmarks.peers.spark.session import Session, SparkError
from compat.spark import topics
from compat.spark.scenes import FULL, Scene
from compat.world import STORES

pytestmark = pytest.mark.parametrize("scene", list(STORES), indirect=True, scope="session")
ROWS = 3000
# What Spark makes for the tests that write: text, binary, nulls and a header.
MADE = (
    "if(id % 5 = 0, null, cast(id as string)) as key",
    "if(id % 7 = 0, null, encode(concat('value ', id), 'utf-8')) as value",
    "array(named_struct('key', 'n', 'value', cast(cast(id as string) as binary))) as headers",
)


def source(scene: Scene, topic: str, **options: object) -> dict[str, object]:
    given = {"kafka.bootstrap.servers": scene.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    return {"format": "kafka", "options": given | {name: str(value) for name, value in options.items()}}


def expected() -> dict[bytes, tuple[bytes | None, bytes | None]]:
    """Key and value by what the header says."""
    names = [str(number).encode() for number in range(ROWS)]
    return {
        name: (name if number % 5 else None, b"value " + name if number % 7 else None)
        for number, name in enumerate(names)
    }


def check_made(rows: list[topics.Row]) -> None:
    assert len(rows) == ROWS
    assert {row.headers[0][1]: (row.key, row.value) for row in rows if row.headers} == expected()


def test_reads_what_was_written(connector: Session, scene: Scene) -> None:
    place = scene.place / "connector-read"
    connector.ask("copy", source=source(scene, FULL), sink={"format": "parquet", "path": str(place)})
    assert topics.rows_of(topics.load(place)) == scene.rows


def test_writes_what_is_read(connector: Session, scene: Scene) -> None:
    topic, place = f"t-{uuid4().hex}", scene.place / "connector-write"
    topics.create(scene.bootstrap, topic, 3)
    sink = {"format": "kafka", "options": {"kafka.bootstrap.servers": scene.bootstrap, "topic": topic}}
    connector.ask("copy", source={"rows": ROWS, "select": MADE}, sink=sink)
    connector.ask("copy", source=source(scene, topic), sink={"format": "parquet", "path": str(place)})
    check_made(topics.rows_of(topics.load(place)))


def test_streams_with_a_rate_limit(connector: Session, scene: Scene) -> None:
    """From topic to topic to files, a part at a time; then once more, when nothing is left to do."""
    topic, place = f"t-{uuid4().hex}", scene.place / "connector-stream"
    topics.create(scene.bootstrap, topic, 3)
    address = {"kafka.bootstrap.servers": scene.bootstrap}
    limit = topics.span(scene.bootstrap, FULL, 5) // 4
    limited = source(scene, FULL, startingOffsets="earliest", maxOffsetsPerTrigger=limit)
    limited["select"] = ["key", "value", "headers"]  # the sink would take a column `partition` at its word
    sink = {"format": "kafka", "options": address | {"topic": topic}}
    batches = connector.ask("stream", source=limited, sink=sink, checkpoint=str(place / "first"))
    counts = [batch["numInputRows"] for batch in batches["batches"]]
    assert sum(counts) == len(scene.rows)
    if scene.broker != "entries":  # there offsets are times, and a limit in offsets says little about rows
        assert max(counts) <= limit + 5, "each partition's share is rounded up"
        assert len([count for count in counts if count]) >= 4
    files = {"format": "parquet", "path": str(place / "rows")}
    copied = source(scene, topic, startingOffsets="earliest")
    connector.ask("stream", source=copied, sink=files, checkpoint=str(place / "second"))
    told = [(row.key, row.value, row.headers) for row in scene.rows]
    found = [(row.key, row.value, row.headers) for row in topics.rows_of(topics.load(place / "rows"))]
    assert sorted(found, key=repr) == sorted(told, key=repr)
    again = connector.ask("stream", source=copied, sink=files, checkpoint=str(place / "second"))
    assert sum(batch["numInputRows"] for batch in again["batches"]) == 0


def test_offsets_that_are_gone_are_told(connector: Session, scene: Scene) -> None:
    gone = source(scene, FULL, startingOffsets='{"full": {"0": -2, "1": -2, "2": -2, "3": -2, "4": 0}}')
    files = {"format": "parquet", "path": str(scene.place / "gone")}
    with pytest.raises(SparkError, match="offset"):
        connector.ask("copy", source=gone, sink=files)
