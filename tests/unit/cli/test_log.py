"""What the log says of changes of data, and its level, which changes while the broker runs."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root

SETTINGS = ("durability=written", "log.retention.check.interval.ms=100", "auto.create.topics.enable=false")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", *SETTINGS) as process:
        yield process


def call(broker: BrokerProcess, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(root, [*arguments, "--bootstrap", broker.bootstrap])
    assert result.exit_code == code, result.output
    return result.output


def wait_for(broker: BrokerProcess, words: str, level: str = "info") -> str:
    """The first line of the log with these words, which must have this level."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for line in map(json.loads, list(broker.log)):
            if words in line["message"]:
                assert line["level"] == level
                return str(line["message"])
        time.sleep(0.05)
    raise AssertionError(f"{words!r} is not in the log: {broker.log}")


def test_changes_of_data_are_one_line_each(broker: BrokerProcess, tmp_path: Path) -> None:
    call(broker, "topic", "create", "orders", "--set", "segment.bytes=1024")
    assert wait_for(broker, "created") == "topic orders: created, 1 partition, segment.bytes=1024"
    call(broker, "topic", "alter", "orders", "--partitions", "3")
    assert wait_for(broker, "before") == "topic orders: 3 partitions, 1 before"
    file = tmp_path / "lines"
    for _ in "ab":
        file.write_bytes(b"x" * 2000 + b"\n")
        call(broker, "produce", "orders", str(file), "--partition", "0")
    call(broker, "topic", "alter", "orders", "--set", "retention.bytes=1000")
    assert "retention.bytes=1000" in wait_for(broker, "settings of its own")
    removed = wait_for(broker, "retention (")
    assert removed.startswith("orders:0: retention (604800000 ms, 1000 bytes) removed offsets 0 to below 1, 0.0 MB; ")
    call(broker, "topic", "delete", "orders")
    assert wait_for(broker, "deleted") == "topic orders: deleted, 3 partitions with all records"


def test_the_level_changes_while_the_broker_runs(broker: BrokerProcess) -> None:
    assert "korvet_fast\tINFO\tdefault\n" in call(broker, "config", "list", "--loggers")
    said = call(broker, "config", "set", "korvet_fast=debug", "--loggers")
    assert said == "altered 1 setting of the broker's loggers\n"
    wait_for(broker, "the level of logger korvet_fast is now DEBUG", "warning")
    assert "korvet_fast\tDEBUG\trunning\n" in call(broker, "config", "list", "--loggers", "--broker", "1")
    wait_for(broker, "a connection of 127.0.0.1", "debug")
    call(broker, "config", "set", "korvet_fast=ERROR", "--loggers")
    call(broker, "topic", "create", "unsaid")
    call(broker, "config", "set", "--unset", "korvet_fast", "--loggers")
    call(broker, "topic", "create", "said")
    wait_for(broker, "topic said: created")
    assert not any("unsaid" in line for line in broker.log)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("korvet_fast=loud", "korvet_fast is 'loud', but must be one of trace, debug, info, warn"),
        ("korvet_fst=debug", "there is no logger 'korvet_fst'; did you mean 'korvet_fast'?"),
        ("asyncio=debug", "there is no logger 'asyncio'"),
    ],
)
def test_levels_and_loggers_that_are_none(broker: BrokerProcess, given: str, words: str) -> None:
    assert words in call(broker, "config", "set", given, "--loggers", code=1)


def test_the_level_at_the_start(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", *SETTINGS, "log.level=debug") as broker:
        call(broker, "topic", "list")
        wait_for(broker, "a connection of 127.0.0.1", "debug")
