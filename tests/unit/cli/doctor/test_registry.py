"""What doctor says of a registry that is missing or damaged, before a broker starts over it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from korvet_fast.cli import root
from korvet_fast.testing import broker_in_thread


def damage(registry: Path, place: float) -> None:
    (segment,) = registry.glob("*.log")
    whole = segment.read_bytes()
    position = int(len(whole) * place)
    segment.write_bytes(whole[:position] + bytes(40) + whole[position + 40 :])


def empty(registry: Path) -> None:
    (segment,) = registry.glob("*.log")
    segment.write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (shutil.rmtree, "is missing or empty, and logs hold records (1, the first t:0). Copy it back"),
        (empty, "is missing or empty, and logs hold records (1, the first t:0). Copy it back"),
        (lambda registry: damage(registry, 0), ".log is damaged at byte 0, and no broker starts."),
        (lambda registry: damage(registry, 0.5), ", and no broker starts."),
    ],
)
def test_a_registry_that_no_broker_may_start_over(tmp_path: Path, harm: Callable[[Path], None], told: str) -> None:
    def ask() -> tuple[int, str]:
        asked = CliRunner().invoke(root, ["doctor", "--store", f"file:{tmp_path}", "--listen", "kafka://127.0.0.1:0"])
        return asked.exit_code, asked.output

    with broker_in_thread(f"file:{tmp_path}") as address:
        producer = Producer({"bootstrap.servers": address})
        producer.produce("t", b"a record")
        assert producer.flush(60) == 0
        assert "registry " not in ask()[1]
    code, before = ask()
    assert code == 0
    assert "registry " not in before
    harm(tmp_path / "@registry")
    code, said = ask()
    assert code == 1
    assert "bad   registry" in said
    assert told in said


def test_the_torn_end_that_a_crash_leaves_is_no_finding(tmp_path: Path) -> None:
    with broker_in_thread(f"file:{tmp_path}"):
        shutil.copytree(tmp_path, tmp_path.with_name("crashed"))
    crashed = tmp_path.with_name("crashed")
    (segment,) = (crashed / "@registry").glob("*.log")
    with segment.open("ab") as file:
        file.write(bytes(17))
    said = CliRunner().invoke(root, ["doctor", "--store", f"file:{crashed}", "--listen", "kafka://127.0.0.1:0"])
    assert said.exit_code == 0
    assert "registry " not in said.output
