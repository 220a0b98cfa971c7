"""Two workers as one column of the table: each gets its share of a load, in a topic that it leads."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import generator
from benchmarks.contestants import TwoWorkers, share
from benchmarks.peers.process import Peer
from benchmarks.peers.workers import Worker, Workers
from benchmarks.report import lines
from benchmarks.rows import Figures, Load
from benchmarks.table import LOADS


class Parent(Workers):
    """One whose partitions are led in an order that chance might give."""

    def __init__(self, *leaders: int) -> None:
        super().__init__(Path())
        self.workers = [Worker(number, Path(), 9000 + number, number) for number in (1, 2)]
        self._leaders = iter(leaders)

    def create(self, topic: str, partitions: int, configs: Sequence[tuple[str, str]]) -> dict[Worker, list[int]]:
        led: dict[Worker, list[int]] = {}
        for number in range(partitions):
            led.setdefault(self.workers[next(self._leaders) - 1], []).append(number)
        return led


def test_each_worker_has_its_share() -> None:
    assert share(("--connections", "8", "--batch-bytes", "65536"), 2) == (
        *("--connections", "4"),
        *("--batch-bytes", "65536"),
    )
    assert share(("--seconds", "1", "--megabytes", "500", "--connections", "1"), 2) == (
        *("--seconds", "1"),
        *("--megabytes", "250"),
        *("--connections", "1"),
    )
    assert share(("--partitions", "100", "--per-request", "100"), 2) == ("--partitions", "100", "--per-request", "50")
    assert share((), 2) == ()


def test_a_load_goes_to_both_and_their_figures_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, str]] = []

    def load(peer: Peer, mode: str, topic: str, *arguments: str) -> Figures:
        asked.append((mode, peer.port, topic))
        return {"mb_per_s": 100.0 * (peer.port - 9000), "broker_cpu": 0.9, "requests_per_s": 1.0, "records_per_s": 2.0}

    monkeypatch.setattr(generator, "load", load)
    (fetch,) = (load for load in LOADS if "workers" in load.peers and load.mode == "fetch")
    both = TwoWorkers(Parent(2, 2, 1))  # the second topic is not needed
    figures = both.measure(fetch, 1.0)
    assert figures["mb_per_s"] == 300.0
    assert figures["broker_cpu_s_per_gb"] == 6.0
    assert sorted(asked) == [
        *(("fetch", 9001, "t2"), ("fetch", 9002, "t0")),
        *(("produce", 9001, "t2"), ("produce", 9002, "t0")),
    ]
    both.measure(fetch, 1.0)  # what was filled is read again
    assert len(asked) == 6
    others = {"kafka": [{"mb_per_s": 150.0}], "embedded": [{"mb_per_s": 100.0}]}
    (row,) = lines(fetch, {**others, "workers": [figures]})
    told = {ratio["what"]: (ratio["ratio"], ratio["reached"]) for ratio in row["ratios"] if ratio["of"] == "workers"}
    assert told == {"2 workers / Embedded": (3.0, True), "2 workers / Kafka": (2.0, True)}


def test_of_a_topic_of_many_partitions_each_gets_those_that_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[int, tuple[str, tuple[str, ...]]] = {}

    def load(peer: Peer, mode: str, topic: str, *arguments: str) -> Figures:
        asked[peer.port] = topic, arguments[arguments.index("--numbers") :]
        return {"mb_per_s": 1.0, "broker_cpu": 1.0, "requests_per_s": 1.0, "records_per_s": 1.0}

    monkeypatch.setattr(generator, "load", load)
    produce = Load("some load", (), (), kept=True, partitions=4)
    figures = TwoWorkers(Parent(2, 1, 2, 1)).measure(produce, 1.0)
    assert asked == {9001: ("t0", ("--numbers", "1,3")), 9002: ("t0", ("--numbers", "0,2"))}
    assert figures["server_cpu_s_per_gb"] == 1000.0
