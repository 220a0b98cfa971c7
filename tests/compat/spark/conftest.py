"""One Spark for all tests that need no particular version of it: a JVM takes seconds to start."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.peers.spark.session import Session
from compat.spark.environments import open_connector
from compat.spark.scenes import BROKERS, Scene, open_scene
from korvet_fast.spark import configure
from requirement import require

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on this machine's `local[2]` with the source `korvet`; it ends with the tests."""
    require("java")
    home: Path = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SPARK_HOME", raising=False)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.chdir(home)  # where Spark puts what it is not told a place for
        builder = SparkSession.builder.master("local[2]").appName("korvet-fast tests")
        places = {"spark.local.dir": home / "local", "spark.sql.warehouse.dir": home / "warehouse"}
        for name, value in {**SETTINGS, **places}.items():
            builder = builder.config(name, str(value))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel(os.environ.get("KORVET_TEST_SPARK_LOG", "ERROR"))
    configure(session)
    yield session
    session.stop()
    gateway = type(session.sparkContext)._gateway
    if gateway is not None:  # stop() leaves the JVM running until Python ends
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(120)


@pytest.fixture(scope="session")
def connector() -> Iterator[Session]:
    """PySpark with Spark's own Kafka connector, in a process of its own."""
    with open_connector() as session:
        yield session


@pytest.fixture(scope="session", params=BROKERS)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Our broker over each store, then Apache Kafka; all with the topic FULL."""
    with open_scene(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened
