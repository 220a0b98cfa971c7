"""A real standalone cluster: executors of other processes, whose Python has our package from an archive only."""

from pathlib import Path

import pytest

from benchmarks.peers.spark.session import open_session
from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.cluster import bare_python, build_packages, driver_environment, open_cluster, pack

ROWS = 3000
MADE = ("cast(id as string) as key", "concat('value ', id) as value")


@pytest.mark.timeout(300)
def test_executors_have_what_the_archive_brings(broker: BrokerProcess, tmp_path: Path) -> None:
    """docs/spark-cluster.md, step by step: written, read, and streamed through two workers."""
    python, packages = bare_python(), build_packages(tmp_path)
    archive = pack(packages)
    for topic in ("first", "second"):
        topics.create(broker.bootstrap, topic, 4)
    address = {"kafka.bootstrap.servers": broker.bootstrap}
    conf = {
        "spark.archives": f"{archive}#packages",
        "spark.executorEnv.PYTHONPATH": "packages",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
    }
    with (
        open_cluster(tmp_path, python) as cluster,
        open_session(
            python, korvet=True, master=cluster.master, conf=conf, environment=driver_environment(packages)
        ) as session,
    ):
        made = {"rows": ROWS, "partitions": 4, "select": MADE}
        session.ask("copy", source=made, sink={"format": "korvet", "options": address | {"topic": "first"}})
        assert len(cluster.executors()) == 2
        source = {"format": "korvet", "options": address | {"subscribe": "first", "startingOffsets": "earliest"}}
        sink = {"format": "korvet", "options": address | {"topic": "second"}}
        copied = source | {"select": ["key", "value"]}
        answer = session.ask("stream", source=copied, sink=sink, checkpoint=str(tmp_path / "checkpoint"))
        assert sum(batch["numInputRows"] for batch in answer["batches"]) == ROWS
        read = {"format": "korvet", "options": address | {"subscribe": "second"}}
        session.ask("copy", source=read, sink={"format": "parquet", "path": str(tmp_path / "rows")})
    found = topics.rows_of(topics.load(tmp_path / "rows"))
    assert len(found) == ROWS
    assert {(row.key, row.value) for row in found} == {(b"%d" % i, b"value %d" % i) for i in range(ROWS)}
