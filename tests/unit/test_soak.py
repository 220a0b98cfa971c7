"""The picture of a soak, and what counts as left open or kept in memory."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from soak import clients
from soak.picture import Happened, draw
from soak.samples import ALLOWED, Sample, find_leaks
from soak.spark_stream import Read, find_uncopied, find_wrong
from soak.worlds import World


def sample(descriptors: int, pid: int = 7, at: float = 1.0, memory: float = 50.0) -> Sample:
    return Sample(at, "files 0", pid, memory, descriptors)


def find(*descriptors: int) -> list[str]:
    return find_leaks([sample(each) for each in descriptors], ["files 0"])


def test_descriptors_that_stay_are_found() -> None:
    assert find(20, 20 + ALLOWED["descriptors"]) == []
    assert find(20, 90, 21) == []  # they went again
    (leak,) = find(20, 40, 60)
    assert leak == "broker files 0 (process 7) had 20, 40, 60 descriptors between the chapters"
    assert len(find(*range(20, 40))) == 1  # one more in each chapter


def test_memory_that_stays_is_found() -> None:
    def of(*amounts: float) -> list[str]:
        return find_leaks([sample(20, memory=amount) for amount in amounts], ["files 0"])

    assert of(50, 70, 72, 71, 72, 70) == []  # what is loaded at the first use
    (leak,) = of(*range(50, 90, 3))
    assert "50, 53, 56" in leak
    assert leak.endswith(" memory between the chapters")


def test_processes_that_ended_soon_prove_nothing() -> None:
    (told,) = find_leaks([sample(20), sample(90, 8)], ["files 0"])
    assert "no process of broker files 0 lived through two chapters" in told
    (told,) = find_leaks([sample(20), sample(20)], ["files 0", "redis 0"])
    assert "no process of broker redis 0" in told


def test_faults_that_end_no_process_leave_every_broker_alone(tmp_path: Path) -> None:
    world = World("redis", [(tmp_path / "a", None), (tmp_path / "b", None)])
    assert set(world.faults) == {"pause broker 0", "pause broker 1"}
    assert len(world.restarts) == 4


class LogOfNothing:
    """A client of Kafka 0.7 that finds a log without messages."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "LogOfNothing":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def offsets(self, *_: object) -> list[int]:
        return [0]

    def fetch(self, *_: object) -> bytes:
        return b""


def test_an_empty_log_is_not_what_an_old_client_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "LegacyClient", LogOfNothing)
    old = clients.OldClient(9092, "old-1")
    old.sent = 100
    with pytest.raises(AssertionError, match="nothing is there of 100 messages"):
        old.check()


@pytest.mark.parametrize(
    ("rows", "broken"),
    [
        ([(0, 3, b"a"), (0, 5, b"b"), (1, 0, b"a")], []),
        ([(0, 3, b"a"), (1, 0, b"a")], ["(0, 5, b'b') is not there"]),
        ([(0, 3, b"a"), (0, 5, b"b"), (1, 0, b"a"), (0, 3, b"a")], ["(0, 3, b'a') is there 2 times"]),
        ([(0, 3, b"a"), (0, 5, b"c"), (1, 0, b"a")], ["(0, 5, b'b') is not there", "(0, 5, b'c') is in no log"]),
    ],
)
def test_what_spark_has_not_read_once_is_found(rows: list[Read], broken: list[str]) -> None:
    assert find_wrong(rows, {0: [(3, b"a"), (5, b"b")], 1: [(0, b"a")]}) == broken


@pytest.mark.parametrize(
    ("copied", "broken"),
    [
        ([b"a", b"b", b"a"], []),
        ([b"a", b"b", b"a", b"b"], []),  # at least once
        ([b"a", b"b"], ["(0, b'a') is there 1 times, not 2"]),
        ([b"a", b"c", b"a"], ["(0, b'b') is there 0 times, not 1", "(0, b'c') is in no log"]),
    ],
)
def test_what_spark_has_not_written_is_found(copied: list[bytes], broken: list[str]) -> None:
    log = {0: [(3, b"a"), (5, b"b"), (6, b"a")]}
    assert find_uncopied(log, {0: list(enumerate(copied))}) == broken


def test_the_picture_has_a_column_for_each_world(tmp_path: Path) -> None:
    file = tmp_path / "soak.svg"
    waits = {"files": [(1.0, 0.002), (2.0, 0.5)], "redis": [(1.0, 0.004)]}
    draw(file, "seed 1", 0.0, waits, [sample(20), sample(21, at=2.0)], [Happened(1.5, "files", "kill -9")])
    comments = file.read_text()
    assert "files: a record acknowledged" in comments
    assert "redis: a record acknowledged" in comments
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
