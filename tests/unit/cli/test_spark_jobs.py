"""`ingest` and `export` up to the point where Spark starts."""

import re
import signal
import sys
import threading
from collections.abc import Callable

import pytest
from click import UsageError
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import ingest, root
from korvet_fast.cli.export import read_bound, watch
from korvet_fast.cli.signals import asked_to_end
from korvet_fast.cli.spark_bar import job_bar
from korvet_fast.cli.spark_job import explain, summary
from korvet_fast.spark import jobs

NOBODY = ["--bootstrap", "127.0.0.1:1"]


def said(*arguments: str, code: int) -> str:
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("command", [["ingest", "a.csv", "--topic", "t"], ["export", "t", "--to", "parquet", "out"]])
def test_without_spark(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    for name in [name for name in sys.modules if name.startswith("korvet_fast.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("korvet_fast.spark")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert "pip install 'korvet-fast[spark]'" in said(*command, code=1)


@pytest.mark.parametrize("command", [["ingest", "a.csv", "--topic", "t"], ["export", "t", "--to", "parquet", "out"]])
def test_without_a_broker(command: list[str]) -> None:
    assert "start a broker with `korvet-fast serve`" in said(*command, *NOBODY, code=1)


def test_a_topic_that_is_not_made(start_broker: Callable[..., BrokerProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "PATIENCE", 5.0)
    broker = start_broker("auto.create.topics.enable=false")
    words = said("ingest", "a.csv", "--topic", "nope", "--bootstrap", broker.bootstrap, code=1)
    assert "topic 'nope': There is no such topic" in words


def test_a_topic_that_there_is_not(broker: BrokerProcess) -> None:
    words = said("export", "nope", "--to", "parquet", "out", "--bootstrap", broker.bootstrap, code=1)
    assert "topic 'nope': There is no such topic" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ingest", "a.txt", "--topic", "t"], "give --format parquet|csv|json"),
        (["ingest", "a.csv", "b.json", "--topic", "t"], "give --format parquet|csv|json"),
        (["ingest", "--topic", "t"], "Missing argument 'FILES...'"),
        (["ingest", "a.csv", "--topic", "t", "--option", "sep"], "'sep': write it as NAME=VALUE"),
        (["export", "t", "--to", "csv", "out"], "'csv' is not 'parquet'"),
        (["export", "t", "--to", "parquet", "out", "--checkpoint", "c"], "give --follow, or leave it out"),
        (["export", "t", "--to", "parquet", "out", "--follow", "--until", "2026-01-01"], "knows --until latest only"),
        (["export", "t", "--to", "parquet", "out", "--from", "latest"], "--from 'latest': write earliest, a time"),
    ],
)
def test_mistakes(arguments: list[str], words: str) -> None:
    assert words in said(*arguments, *NOBODY, code=2)


@pytest.mark.parametrize(
    ("side", "text", "options"),
    [
        ("starting", "earliest", {"startingOffsets": "earliest"}),
        ("ending", "latest", {"endingOffsets": "latest"}),
        ("ending", '{"t": {"0": 7}}', {"endingOffsets": '{"t": {"0": 7}}'}),
        ("ending", "1970-01-01T00:00:02", {"endingTimestamp": "2000"}),
        ("ending", "1970-01-01T01:00:02+01:00", {"endingTimestamp": "2000"}),
        (
            "starting",
            "1970-01-02",
            {"startingTimestamp": "86400000", "startingOffsetsByTimestampStrategy": "latest"},
        ),
    ],
)
def test_bounds(side: str, text: str, options: dict[str, str]) -> None:
    assert read_bound(side, text) == options


@pytest.mark.parametrize(("side", "text"), [("starting", "latest"), ("ending", "earliest"), ("ending", "soon")])
def test_bounds_that_cannot_be(side: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"{text!r}: write .* a time"):
        read_bound(side, text)


@pytest.mark.parametrize(
    ("files", "form"),
    [
        (["a.parquet"], "parquet"),
        (["s3a://bucket/a.csv.gz", "b.tsv"], "csv"),
        (["a.jsonl", "b.json", "c.ndjson.bz2"], "json"),
        (["a.csv", "b.json"], None),
        (["directory"], None),
        (["a.gz"], None),
    ],
)
def test_formats(files: list[str], form: str | None) -> None:
    assert jobs.guess_format(files) == form


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: file:/a.csv. SQLSTATE: 42K03", "Path does not exist: file:/a.csv."),
        (
            "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
            '  File "x.py", line 1, in y\n'
            "korvet_fast.client.protocol.errors.BrokerError: topic 't': no.\n SQLSTATE: 38000",
            "topic 't': no.",
        ),
        ("An error occurred while calling o1.save.\n: java.lang.X: [A.B] Not so. SQLSTATE: 42K02\n\tat y", "Not so."),
        (
            '[X] Failed to initialize a writer: Traceback (most recent call last):\n  File "x.py", line 1, in y\n'
            "ModuleNotFoundError: No module named 'z'\n",
            "Failed to initialize a writer: ModuleNotFoundError: No module named 'z'",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "Spark did not start: it needs Java 17 or newer"),
    ],
)
def test_errors_in_a_sentence(text: str, sentence: str) -> None:
    assert explain(Exception(text)).startswith(sentence)
    assert "\n" not in explain(Exception(text))


def test_summary() -> None:
    assert summary(1, 0, 2.0, "to x") == "1 row (0.0 MB) to x in 2.0 s"
    assert summary(3000, 1_500_000, 2.0, "to x") == "3,000 rows (1.5 MB) to x in 2.0 s: 1,500 rows/s"


class Stage:
    def __init__(self, done: int) -> None:
        self.done = done

    def numTasks(self) -> int:
        return 8

    def numCompleteTasks(self) -> int:
        return self.done

    def inputRecords(self) -> int:
        return 70_000

    def shuffleReadRecords(self) -> int:
        return 0


class Spark:
    """Looks as if a job of one stage were under way."""

    def __init__(self, done: int = 3) -> None:
        self.asked = threading.Event()
        self.sparkContext = self._jsc = self
        self.stages = [Stage(done)]

    def sc(self) -> "Spark":
        return self

    statusStore = activeStages = sc

    def length(self) -> int:
        self.asked.set()
        return len(self.stages)

    def apply(self, number: int) -> Stage:
        return self.stages[number]


def test_a_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    spark = Spark()
    with job_bar(spark, "ingest"):  # type: ignore[arg-type]
        assert spark.asked.wait(120)
    assert "3/8" in capsys.readouterr().err


def test_a_bar_moves_before_the_first_task_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    spark = Spark(0)
    with job_bar(spark, "ingest"):  # type: ignore[arg-type]
        assert spark.asked.wait(120)
        spark.asked.clear()
        assert spark.asked.wait(120)
    told = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert "0/8 tasks, 70,000 rows" in told


def test_no_bar_is_drawn_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    spark = Spark()
    with pytest.raises(KeyError), job_bar(spark, "ingest"):  # type: ignore[arg-type]
        raise KeyError
    assert not spark.asked.is_set()
    assert capsys.readouterr().err == ""


class Followed:
    """A stream that writes 70,000 rows and ends at the second look, or gets a signal in the middle of it."""

    def __init__(self, interrupted: bool) -> None:
        self.interrupted = interrupted
        self.looks = 0
        self.rows = 70_000
        self.stopped = self.whole = False

    @property
    def isActive(self) -> bool:
        self.looks += 1
        if self.looks == 2 and self.interrupted:
            signal.raise_signal(signal.SIGTERM)
            self.whole = True  # the call into Java was not broken off
        return self.looks == 1 or self.interrupted

    def awaitTermination(self) -> None:
        assert not self.interrupted

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_stream_is_watched_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupted: bool
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream, before = Followed(interrupted), signal.getsignal(signal.SIGTERM)
    watch(stream, stream)  # type: ignore[arg-type]
    assert (stream.looks, stream.stopped, stream.whole) == (2, interrupted, interrupted)
    assert signal.getsignal(signal.SIGTERM) == before
    assert "70,000 rows written" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)


def test_who_asks_twice_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), asked_to_end() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set()
        signal.raise_signal(signal.SIGTERM)
