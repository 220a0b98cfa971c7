"""The client commands against a real broker."""

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.cli.table import draw_table
from korvet_fast.client.producer.hashing import murmur2_hash


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    # Nothing here is about the disk: no test has to wait for it.
    with BrokerProcess(tmp_path_factory.mktemp("cli") / "data", "durability=written") as process:
        yield process


def call(broker: BrokerProcess, *arguments: str, code: int = 0) -> str:
    result: Result = CliRunner().invoke(root, [*arguments, "--bootstrap", broker.bootstrap])
    assert result.exit_code == code, result.output
    return result.output


def start(broker: BrokerProcess, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "korvet_fast", *arguments, "--bootstrap", broker.bootstrap]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def read_all(process: "subprocess.Popen[bytes]") -> bytes:
    """The standard error of a process that has ended; closes its pipes."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    process.stdout.close()
    with process.stderr as complaints:
        return complaints.read()


def test_a_topic_from_its_making_to_its_end(broker: BrokerProcess) -> None:
    given = ("--partitions", "3", "--layout", "batches", "--config", "retention.ms=5000")
    assert call(broker, "topic", "create", "life", *given) == ("created topic life with 3 partitions\n")
    assert "life\t3\n" in call(broker, "topic", "list")
    lines = call(broker, "topic", "describe", "life").splitlines()
    empty = ["1", "0", "0", "0", "1", "1", ""]
    assert [line.split("\t") for line in lines[:3]] == [[str(index), *empty] for index in range(3)]
    assert lines[4:] == ["retention.ms\t5000"]
    altered = call(broker, "topic", "alter", "life", "--partitions", "4", "--unset", "retention.ms")
    assert altered == "altered 1 setting of topic life\ntopic life has 4 partitions now\n"
    assert "no settings of its own" in call(broker, "topic", "describe", "life").splitlines()[-1]
    assert call(broker, "topic", "delete", "life") == "deleted topic life\n"
    assert "life" not in call(broker, "topic", "list")


def test_one_partition_is_not_partitions(broker: BrokerProcess) -> None:
    assert call(broker, "topic", "create", "single") == "created topic single with 1 partition\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["topic", "create", "once"], "topic 'once' was not created: topic 'once' already exists"),
        (["topic", "create", "a b"], "INVALID_TOPIC_EXCEPTION"),
        (["topic", "create", "new", "--layout", "entries"], "this store keeps records as batches only"),
        (["topic", "create", "new", "--set", "retention.m=1"], "did you mean 'retention.ms'?"),
        (["topic", "alter", "once", "--partitions", "1"], "INVALID_PARTITIONS"),
        (["topic", "alter", "once", "--set", "retention.ms=soon"], "must be a whole number"),
        (["topic", "alter", "never", "--set", "retention.ms=1"], "UNKNOWN_TOPIC_OR_PARTITION"),
        (["topic", "describe", "never"], "topic 'never': There is no such topic"),
        (["topic", "delete", "never"], "topic 'never' was not deleted"),
        (["consume", "never"], "topic 'never': There is no such topic"),
        (["consume", "once", "--partition", "2"], "has no partition 2, only 0 to 1"),
        (["produce", "once", "--partition", "9", __file__], "has no partition 9, only 0 to 1"),
    ],
)
def test_what_the_broker_refuses_is_said_in_words_and_ends_in_1(
    broker: BrokerProcess, arguments: list[str], words: str
) -> None:
    if "once\t" not in call(broker, "topic", "list"):
        call(broker, "topic", "create", "once", "--partitions", "2")
    assert words in call(broker, *arguments, code=1)


def test_deleting_some_that_exist_and_some_that_do_not(broker: BrokerProcess) -> None:
    call(broker, "topic", "create", "first")
    said = call(broker, "topic", "delete", "nobody", "first", code=1)
    assert "deleted topic first" in said
    assert "topic 'nobody' was not deleted" in said


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_file_comes_back_line_by_line(broker: BrokerProcess, tmp_path: Path, compression: str) -> None:
    topic = f"lines-{compression}"
    lines = [b"first", b"", "grün ☃".encode(), b"\xff\x00 no text", b"x" * 200_000, *(b"%d" % n for n in range(20_000))]
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join(lines))  # the last line has no end
    said = call(broker, "produce", topic, str(file), "--compression", compression)
    assert said == f"20,005 records stored in topic {topic}\n"
    result = CliRunner().invoke(
        root, ["consume", topic, "--from", "earliest", "--count", "20005", "--bootstrap", broker.bootstrap]
    )
    assert result.stdout_bytes == b"\n".join(lines) + b"\n"


def test_json_says_everything_of_a_record(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes("grün\n\xff\n".encode("latin-1").replace(b"gr\xfcn", "grün".encode()))
    call(broker, "produce", "said", str(file))
    said = call(broker, "consume", "said", "--from", "0", "--count", "2", "--output", "json")
    first, second = (json.loads(line) for line in said.splitlines())
    assert abs(first.pop("timestamp") - time.time() * 1000) < 60_000
    assert first == {"topic": "said", "partition": 0, "offset": 0, "key": None, "value": "grün", "headers": []}
    assert second["value"] == {"base64": "/w=="}


def test_an_empty_file_is_no_record(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.write_bytes(b"")
    assert call(broker, "produce", "single-empty", str(file)) == "0 records stored in topic single-empty\n"


def test_a_batch_that_is_refused_ends_it_with_the_number_stored(broker: BrokerProcess, tmp_path: Path) -> None:
    call(broker, "topic", "create", "small", "--set", "max.message.bytes=20000")
    file = tmp_path / "lines"
    file.write_bytes(b"fits\n" + b"x" * 100_000 + b"\n" + b"too large\n" * 100_000)
    writer = start(broker, "produce", "small", str(file), "--partition", "0")
    assert writer.wait(120) == 1
    said = read_all(writer).decode()
    assert said.startswith("Error: partition 0 of topic 'small': ")
    assert said.endswith("(MESSAGE_TOO_LARGE); 1 record stored before.\n")
    assert said.count("\n") == 1  # and no complaint about the other batches that were under way


def test_a_key_is_that_of_every_record(broker: BrokerProcess, tmp_path: Path) -> None:
    call(broker, "topic", "create", "keyed", "--partitions", "6")
    file = tmp_path / "lines"
    file.write_bytes(b"one\ntwo\n")
    call(broker, "produce", "keyed", str(file), "--key", "foobar")
    said = call(broker, "consume", "keyed", "--from", "earliest", "--count", "2", "--json")
    found = [json.loads(line) for line in said.splitlines()]
    assert [(each["key"], each["value"]) for each in found] == [("foobar", "one"), ("foobar", "two")]
    assert {each["partition"] for each in found} == {murmur2_hash(b"foobar", 6)}


def test_a_rate_is_not_exceeded(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 30)
    began = time.monotonic()
    assert call(broker, "produce", "paced", str(file), "--rate", "40") == "30 records stored in topic paced\n"
    assert time.monotonic() - began >= 28 / 40, "the last two of 30 lines may not begin before"


def test_a_line_without_end_is_refused(broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korvet_fast.cli.produce.LONGEST_LINE", 1 << 20)
    file = tmp_path / "lines"
    file.write_bytes(b"x" * (3 << 20))
    assert "a line is longer than 1 MiB" in call(broker, "produce", "endless", str(file), code=1)


def test_offsets_to_begin_at(broker: BrokerProcess, tmp_path: Path) -> None:
    call(broker, "topic", "create", "places", "--partitions", "2")
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%d\n" % number for number in range(10)))
    call(broker, "produce", "places", str(file), "--partition", "1")
    only = ("--partition", "1", "--count")
    assert call(broker, "consume", "places", "--from", "earliest", *only, "1") == "0\n"
    assert call(broker, "consume", "places", "--from", "7", *only, "2") == "7\n8\n"
    # Partition 0 is empty: it begins at its end, and the other one at the offset.
    assert call(broker, "consume", "places", "--from", "9", "--count", "1") == "9\n"


def test_lines_from_a_pipe_go_out_as_they_come(broker: BrokerProcess) -> None:
    call(broker, "topic", "create", "live")
    reader = start(broker, "consume", "live", "--from", "earliest")
    writer = start(broker, "produce", "live")
    assert writer.stdin is not None
    assert reader.stdout is not None
    for line in (b"one\n", b"two\n"):
        writer.stdin.write(line)
        writer.stdin.flush()
        assert reader.stdout.readline() == line  # the pipe is still open: nothing was held back
    _, said = writer.communicate(timeout=120)
    assert (writer.returncode, said) == (0, b"2 records stored in topic live\n")
    reader.send_signal(signal.SIGINT)
    _, complaint = reader.communicate(timeout=120)
    assert (reader.returncode, complaint) == (0, b"")


def test_ctrl_c_ends_produce_while_it_waits_for_input(broker: BrokerProcess) -> None:
    call(broker, "topic", "create", "waiting")
    writer = start(broker, "produce", "waiting")
    assert writer.stdin is not None
    writer.stdin.write(b"line\n")
    writer.stdin.flush()
    call(broker, "consume", "waiting", "--from", "earliest", "--count", "1")  # so it has read that, and waits again
    writer.send_signal(signal.SIGINT)
    assert writer.wait(120) == 1
    assert b"Traceback" not in read_all(writer)


@pytest.mark.parametrize("how", [("-m", "korvet_fast"), ("-c", "from korvet_fast.__main__ import main; main()")])
def test_ctrl_c_ends_a_command_that_is_still_being_imported(how: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen(
        # What a script has put into the background ignores Ctrl-C.
        ["env", "--default-signal=INT", sys.executable, *how, "topic", "list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"importing\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=120)
    assert (process.returncode, complaint) == (-signal.SIGINT, b"")


def test_the_installed_command_begins_so_too() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"korvet-fast": "korvet_fast.__main__:main"}


def test_whoever_reads_our_output_may_leave(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x" * 99 + b"\n" + b"y" * 99 + b"\n" * 30_000)
    call(broker, "produce", "leaving", str(file))
    reader = start(broker, "consume", "leaving", "--from", "earliest")
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"x" * 99 + b"\n"
    reader.stdout.close()
    call(broker, "produce", "leaving", str(file))  # something to print into the closed pipe
    assert (reader.wait(120), read_all(reader)) == (0, b"")


def test_doctor_finds_the_broker_and_where_it_sends_clients(broker: BrokerProcess) -> None:
    arguments = ["doctor", "--store", broker.store, "--listen", f"kafka://{broker.bootstrap}"]
    result = CliRunner().invoke(root, arguments)
    assert "a broker is running" in result.output
    assert f"a broker answers at kafka://{broker.bootstrap}" in result.output
    assert f"it sends clients to {broker.bootstrap}, and that answers" in result.output


def test_doctor_knows_another_brokers_port(broker: BrokerProcess, tmp_path: Path) -> None:
    """`serve` could not start there, whether or not a broker uses the store that is named."""
    for running in (False, True):
        with BrokerProcess(tmp_path / "other") if running else contextlib.nullcontext():
            store = f"file:{tmp_path / 'other'}"
            result = CliRunner().invoke(root, ["doctor", "--store", store, "--listen", f"kafka://{broker.bootstrap}"])
            assert result.exit_code == 1
            assert f"kafka://{broker.bootstrap} is taken by a broker with another store" in result.output
            assert ("this store's is" in result.output) == running


def test_doctor_does_not_guess_whose_broker_it_is(broker: BrokerProcess) -> None:
    """The store cannot be asked who uses it, and the broker that answers may well be its own."""
    arguments = ["doctor", "--store", "redis://127.0.0.1:1", "--listen", f"kafka://{broker.bootstrap}"]
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 1
    assert f"a broker answers at kafka://{broker.bootstrap}; whether it uses this store cannot be told" in result.output
    assert f"it sends clients to {broker.bootstrap}, and that answers" in result.output
    assert "another store" not in result.output


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    draw_table(("topic", "partitions"), [("drawn", "1")])
    assert [line.split() for line in click.unstyle(terminal.getvalue()).splitlines()] == [
        ["topic", "partitions"],
        ["drawn", "1"],
    ]


def test_a_progress_bar_on_a_terminal(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 1000)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "korvet_fast", "produce", "bar", str(file), "--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as writer:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while piece := os.read(ours, 10_000):
                seen += piece
        os.close(ours)
        assert writer.wait(120) == 0
    assert b"5.0/5.0 kB" in seen
    assert b"1,000 records stored in topic bar" in seen
