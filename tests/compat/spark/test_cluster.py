"""A real standalone cluster: executors of other processes, whose Python has our package from an archive only."""

import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from benchmarks.peers.spark.session import Session, open_session
from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.cluster import Cluster, bare_python, build_packages, driver_environment, open_cluster, pack

ROWS = 3000
MANY = 1_000_000
MADE = ["cast(id as string) as key", "concat('value ', id) as value"]
BEGUN_WITHIN = 120.0


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_packages(tmp_path_factory.mktemp("packages"))


@pytest.mark.timeout(400)
def test_executors_have_what_the_archive_brings(broker: BrokerProcess, packages: Path, tmp_path: Path) -> None:
    """docs/spark-cluster.md, step by step: written, read, and streamed through two workers, one of which then dies."""
    python = bare_python()
    for topic in ("first", "second", "third"):
        topics.create(broker.bootstrap, topic, 4)
    conf = {
        "spark.archives": f"{pack(packages)}#packages",
        "spark.executorEnv.PYTHONPATH": "packages",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
    }
    own = driver_environment(packages)
    with (
        open_cluster(tmp_path, python) as cluster,
        open_session(python, korvet=True, master=cluster.master, conf=conf, environment=own) as session,
    ):
        pipe(session, broker.bootstrap, tmp_path)
        kill_an_executor(session, cluster, broker.bootstrap, tmp_path)


def source(bootstrap: str, topic: str, *select: str) -> dict[str, Any]:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return {"format": "korvet", "options": options, "select": list(select) or ["*"]}


def sink(bootstrap: str, topic: str) -> dict[str, Any]:
    return {"format": "korvet", "options": {"kafka.bootstrap.servers": bootstrap, "topic": topic}}


def pipe(session: Session, bootstrap: str, place: Path) -> None:
    """Rows to a topic, from there as a stream to another one, and from there to files."""
    made = {"rows": ROWS, "partitions": 4, "select": MADE}
    # Both executors start with it, each a Java machine of its own that unpacks the archive.
    session.ask("copy", source=made, sink=sink(bootstrap, "first"))
    checkpoint = str(place / "checkpoint")
    copied = source(bootstrap, "first", "key", "value")
    answer = session.ask("stream", source=copied, sink=sink(bootstrap, "second"), checkpoint=checkpoint)
    assert sum(batch["numInputRows"] for batch in answer["batches"]) == ROWS
    files = {"format": "parquet", "path": str(place / "rows")}
    session.ask("copy", source=source(bootstrap, "second"), sink=files)
    found = topics.rows_of(topics.load(place / "rows"))
    assert len(found) == ROWS
    assert {(row.key, row.value) for row in found} == {(b"%d" % i, b"value %d" % i) for i in range(ROWS)}


def kill_an_executor(session: Session, cluster: Cluster, bootstrap: str, place: Path) -> None:
    """An executor dies while rows arrive: its tasks run again, and nothing is missing."""
    executors = cluster.executors()
    assert len(executors) == 2
    session.send("copy", source={"rows": MANY, "partitions": 4, "select": MADE}, sink=sink(bootstrap, "third"))
    deadline = time.monotonic() + BEGUN_WITHIN
    while not topics.span(bootstrap, "third", 4):
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.02)
    executors[0].kill()
    session.answer()
    files = {"format": "parquet", "path": str(place / "keys")}
    session.ask("copy", source=source(bootstrap, "third", "key"), sink=files)
    keys = topics.load(place / "keys")["key"]
    assert len(pc.unique(keys)) == MANY
    assert len(keys) < 2 * MANY, "each task may have run twice, but not all of them"
