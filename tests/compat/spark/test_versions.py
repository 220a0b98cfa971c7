"""Older versions of PySpark than the one other tests use: everything there and back once, in batches and streams."""

from pathlib import Path

import pytest

from benchmarks.peers.spark import environment
from benchmarks.peers.spark.session import open_session
from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.environments import python

ROWS = 2000
MADE = ("cast(id as string) as key", "concat('value ', id) as value")


@pytest.mark.parametrize("version", environment.OLDER)
def test_there_and_back(version: str, broker: BrokerProcess, tmp_path: Path) -> None:
    first, second = f"first-{version}", f"second-{version}"
    for topic in (first, second):
        topics.create(broker.bootstrap, topic, 2)
    address = {"kafka.bootstrap.servers": broker.bootstrap}

    def source(topic: str, **options: str) -> dict[str, object]:
        return {"format": "korvet", "options": address | {"subscribe": topic} | options}

    def sink(topic: str) -> dict[str, object]:
        return {"format": "korvet", "options": address | {"topic": topic}}

    with open_session(python(version), korvet=True) as session:
        session.ask("copy", source={"rows": ROWS, "select": MADE}, sink=sink(first))
        copied = source(first, startingOffsets="earliest") | {"select": ["key", "value"]}
        request = {"source": copied, "sink": sink(second), "checkpoint": str(tmp_path / "checkpoint")}
        assert _rows(session.ask("stream", **request)) == ROWS
        assert _rows(session.ask("stream", **request)) == 0, "the checkpoint says that all was read"
        if version != "4.1.4":  # rate limits came with 4.2
            limited = source(first, startingOffsets="earliest", maxOffsetsPerTrigger=str(ROWS // 4))
            nowhere = {"format": "noop"}
            answer = session.ask("stream", source=limited, sink=nowhere, checkpoint=str(tmp_path / "limited"))
            assert _rows(answer) == ROWS
            assert max(batch["numInputRows"] for batch in answer["batches"]) <= ROWS // 4 + 2
        files = {"format": "parquet", "path": str(tmp_path / "rows")}
        session.ask("copy", source=source(second), sink=files)
    told = {(b"%d" % number, b"value %d" % number) for number in range(ROWS)}
    found = topics.rows_of(topics.load(tmp_path / "rows"))
    assert len(found) == ROWS
    assert {(row.key, row.value) for row in found} == told


def _rows(answer: dict[str, list[dict[str, int]]]) -> int:
    return sum(batch["numInputRows"] for batch in answer["batches"])
