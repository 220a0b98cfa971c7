"""The JVM of `ingest` and `export` before there is one: what stops a command at once, and sentences about its start."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.cli.ingest import check_files
from korvet_fast.cli.spark_java import GREETING, explain_start
from korvet_fast.spark.jobs import QUICK_START, session_settings


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        'Setting default log level to "WARN".',
        "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).",
        "26/11/25 20:07:30 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform... using",
        'Setting Spark log level to "FATAL".',
        "NOTE: Picked up JDK_JAVA_OPTIONS: -XX:TieredStopAtLevel=1",
    ],
)
def test_greetings_of_spark_are_not_passed_on(line: str) -> None:
    assert GREETING.match(line)


@pytest.mark.parametrize("line", ["data loss: partition 0 of topic 't'", "Traceback (most recent call last):", ""])
def test_all_else_is_passed_on(line: str) -> None:
    assert not GREETING.match(line)


MEMORY = "Invalid maximum heap size: -Xmx1x\nError: Could not create the Java Virtual Machine.\n"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (MEMORY, "spark.driver.memory is '1x', and Java says: 'Invalid maximum heap size: -Xmx1x'; write a size such"),
        ("JAVA_HOME is not set\n", "Spark did not start: it needs Java 17 or newer, as `java` on the path"),
        ("", "Spark did not start: it needs Java 17 or newer"),
        ("Exception in thread main\nError: no such class\n", "Spark did not start: Error: no such class"),
    ],
)
def test_why_java_did_not_start(said: str, sentence: str) -> None:
    assert explain_start(said, {"spark.driver.memory": "1x"}).startswith(sentence)


def test_settings_of_a_session() -> None:
    short = session_settings("n", "local[*]", {"spark.ui.enabled": "true"}, short=True)
    assert short["spark.driver.extraJavaOptions"] == QUICK_START
    assert short["spark.ui.enabled"] == "true"
    own = session_settings("n", "local[*]", {"spark.driver.extraJavaOptions": "-Dx=y"}, short=True)
    assert own["spark.driver.extraJavaOptions"] == "-Dx=y"
    assert "spark.driver.extraJavaOptions" not in session_settings("n", "local[*]", {}, short=False)
    assert "spark.driver.extraJavaOptions" not in session_settings("n", "yarn", {}, short=True)


def test_the_size_of_what_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    for name in ("a.csv", "b.csv", "deep/c.csv"):
        (tmp_path / name).write_bytes(b"1234")
    assert check_files(["*.csv", "deep"], "local[2]", {}) == 12
    assert check_files([str(tmp_path / "a.csv")], "local", {}) == 4
    for elsewhere in ("s3a://bucket/x.csv", "file:/nowhere.csv", "{a,b}.csv"):
        assert check_files([elsewhere], "local[2]", {}) is None
    assert check_files(["x.csv"], "yarn", {}) is None
    assert check_files(["x.csv"], "local[2]", {"spark.hadoop.fs.defaultFS": "hdfs://h"}) is None
    with pytest.raises(ClickException, match=r"there is no file or directory x\.csv in "):
        check_files(["a.csv", "x.csv"], "local[2]", {})
    with pytest.raises(ClickException, match=r"no file fits the pattern \*\.json in "):
        check_files(["*.json"], "local[2]", {})


def test_a_directory_that_exists_costs_no_start(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    at = ["--bootstrap", start_broker().bootstrap]
    assert CliRunner().invoke(root, ["topic", "create", "t", *at]).exit_code == 0
    done = CliRunner().invoke(root, ["export", "t", "--to", "parquet", "out", *at])
    assert (done.exit_code, done.output) == (
        1,
        "Error: out exists already: name another directory, or remove it.\n",  # and not that Spark starts
    )


def test_a_missing_file_costs_no_start_and_makes_no_topic(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broker = start_broker()
    done = CliRunner().invoke(root, ["ingest", "no.csv", "--topic", "never", "--bootstrap", broker.bootstrap])
    assert done.exit_code == 1
    assert done.output == f"Error: there is no file or directory no.csv in {tmp_path}: name what is to be loaded.\n"
    listed = CliRunner().invoke(root, ["topic", "list", "--bootstrap", broker.bootstrap])
    assert "never" not in listed.output
