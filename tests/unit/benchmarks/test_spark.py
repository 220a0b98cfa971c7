"""The table of benchmarks/spark: medians, ratios within a round, and whether a target was reached."""

import socket
from pathlib import Path

import pytest

from benchmarks.peers.process import answers
from benchmarks.spark import report
from benchmarks.spark.contestants import Discard, Figures
from benchmarks.spark.rows import QUERIES
from korvet_fast.endpoint import read_bootstrap
from korvet_fast.spark.cluster import BlockingCluster

MACHINE = dict.fromkeys(
    ("cpus", "cpu", "memory_gb", "kernel", "pyspark", "pyarrow", "korvet-fast", "commit", "connector", "kafka", "java"),
    "x",
)


def table(title: str, **rates: list[float]) -> str:
    (query,) = [query for query in QUERIES if query.title == title]
    measured = {name.replace("_", " "): [Figures(rate, 1 / rate, 0.1) for rate in each] for name, each in rates.items()}
    result = {"measured": "now", "machine": MACHINE, "rounds": 3, "count": 10_000_000}
    return report.table(result | {"rows": report.lines(query, measured)})


def cells(printed: str) -> list[str]:
    """The cells of the line with the rate."""
    (line,) = [line for line in printed.splitlines() if "| M rows/s" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(
    ("ours", "verdict"), [([2.4, 2.6, 2.2], "yes"), ([1.9, 1.8, 9.0], "NO"), ([2.1, 2.1, 2.1], "NO")]
)
def test_both_targets_have_to_be_reached(ours: list[float], verdict: str) -> None:
    found = cells(table("read", connector_kafka=[1.0, 1.0, 1.0], korvet_embedded=ours))
    median = sorted(ours)[1]
    assert found[2] == "1.00"
    assert found[5:] == [f"{median:.2f}", f"{median:.2f}", "≥ 2 and ≥ 2.2 x", verdict]


def test_a_ratio_compares_within_a_round() -> None:
    found = cells(table("write", connector_kafka=[1.0, 0.1, 1.0], korvet_embedded=[5.0, 0.5, 5.0]))
    assert found[6:] == ["5.00", "≥ 4 x", "yes"]


def test_a_broker_that_discards_stands_where_each_ones_own_does() -> None:
    found = cells(table("write, broker discards", connector_discard=[0.5], korvet_discard=[2.5]))
    assert found[2:] == ["0.50", "", "", "2.50", "5.00", "≥ 2.3", "yes"]


def test_what_discards_is_a_broker(tmp_path: Path) -> None:
    with Discard(tmp_path) as broker:
        assert answers(broker.port)
        cluster = BlockingCluster(read_bootstrap(broker.address), 10.0)
        assert cluster.partitions(["anything"]) == {"anything": 2}
        cluster.close()
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", broker.port), 1):
        pass
