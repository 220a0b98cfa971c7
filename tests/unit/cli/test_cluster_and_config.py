"""`cluster info`, `config` and `completion` against a real broker; the fields of every listing in JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.cli.completion import SHELLS, VARIABLE
from korvet_fast.config_def import SETTINGS
from requirement import require


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("durability=written", "node.id=7")
    with BrokerProcess(tmp_path_factory.mktemp("config") / "data", *settings) as process:
        yield process


def call(broker: BrokerProcess, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(root, [*arguments, "--bootstrap", broker.bootstrap])
    assert result.exit_code == code, result.output
    return result.output


def told(broker: BrokerProcess, *arguments: str) -> Any:
    return json.loads(call(broker, *arguments, "--json"))


def test_a_cluster(broker: BrokerProcess) -> None:
    call(broker, "topic", "create", "info", "--partitions", "3")
    found = told(broker, "cluster", "info")
    assert (found["controller"], found["leaderless"], found["lagging"]) == (7, 0, 0)
    assert (found["registry_leader"], found["registry_voters"]) == (7, [7])
    (row,) = found["brokers"]
    assert (row["broker"], row["port"], row["controller"], row["leads"]) == (7, broker.port, True, found["partitions"])
    first, second = call(broker, "cluster", "info").splitlines()
    assert first.startswith(f"cluster {found['cluster']}: 1 broker, ")
    assert second.split("\t")[:4] == ["7", broker.bootstrap, "-", "yes"]


def test_every_setting_of_a_broker_is_listed_with_its_source(broker: BrokerProcess) -> None:
    found = {row["name"]: row for row in told(broker, "config", "list")}
    assert found.keys() == SETTINGS.keys() | {"inter.broker.protocol.version"}  # a fact, which cannot be set
    assert (found["node.id"]["value"], found["node.id"]["source"], found["node.id"]["default"]) == ("7", "start", "1")
    assert all(row["doc"] for row in found.values())
    assert {row["name"] for row in told(broker, "config", "list", "--changed")} == {"durability", "node.id"}
    assert "num.partitions\t1\tdefault\n" in call(broker, "config", "list", "--broker", "7")
    assert "value\t7\n" in call(broker, "config", "describe", "node.id", "num.partitions")


def test_settings_of_a_topic(broker: BrokerProcess) -> None:
    call(broker, "topic", "create", "set")
    of = ("--topic", "set")
    assert call(broker, "config", "set", "retention.ms=5000", *of) == "altered 1 setting of topic 'set'\n"

    def own() -> dict[str, str]:
        rows = told(broker, "config", "list", "--changed", *of)
        return {row["name"]: row["value"] for row in rows if row["source"] == "topic"}

    assert own() == {"retention.ms": "5000"}
    assert "did you mean 'retention.ms'?" in call(broker, "config", "describe", "retention.m", *of, code=1)
    call(broker, "config", "set", "--unset", "retention.ms", *of)
    assert own() == {}
    said = call(broker, "topic", "alter", "set", "--unset", "retention.ms", code=1)
    assert "retention.ms is not set on topic 'set', so it cannot be unset" in said


def test_records_are_counted_when_asked(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("one\ntwo\n")
    call(broker, "produce", "counted", str(file))
    (found,) = told(broker, "topic", "describe", "counted", "--count")
    assert [row["records"] for row in found["partitions"]] == [2]
    (found,) = told(broker, "topic", "describe", "counted")
    assert [row["records"] for row in found["partitions"]] == [None]
    assert {"topic": "counted", "partitions": 1} in told(broker, "topic", "list")


def test_zsh_loads_what_a_new_start_up_file_has_not() -> None:
    script = CliRunner().invoke(root, ["completion", "zsh"], prog_name="korvet-fast").output
    loads = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
    assert script.splitlines()[:2] == ["#compdef korvet-fast", loads]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell: str) -> None:
    require("bash")
    made = CliRunner().invoke(root, ["completion", shell], prog_name="korvet-fast")
    assert made.exit_code == 0
    assert VARIABLE in made.output
    words = {"COMP_WORDS": "korvet-fast top", "COMP_CWORD": "1" if shell != "fish" else "top"}
    environment = {**os.environ, **words, VARIABLE: f"{shell}_complete"}
    command = [str(Path(sys.executable).parent / "korvet-fast")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert "topic" in done.stdout
