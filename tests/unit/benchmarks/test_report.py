"""Which loops are looked into, and what a request takes of them."""

from typing import Any

import pytest

from benchmarks.report import Row, missed, table, time_of_request

MACHINE = {"cpus": 2, "cpu": "x", "memory_gb": 1, "kernel": "6", "python": "3", "korvet-fast": "0", "commit": "c"}


def row(*ratios: dict[str, Any], **more: Any) -> Row:
    return {"load": "produce", "unit": "MB/s", "values": {"batches": [1.0]}, "others_cpu": {}, "ratios": ratios, **more}


def ratio(of: str, to: str, reached: bool | None) -> dict[str, Any]:
    return {"what": f"{of} / {to}", "of": of, "to": to, "ratio": 0.5, "reached": reached}


def test_who_misses_a_target_is_looked_into_and_the_relay_that_does_better() -> None:
    ratios = ratio("batches", "relay-a", False), ratio("embedded", "kafka", False), ratio("entries", "relay-c", True)
    assert missed(row(*ratios)) == ["batches", "relay-a", "embedded"]
    assert missed(row(ratio("embedded", "bare", False), ratio("batches", "relay-bpv", None))) == ["embedded", "bare"]


def test_the_time_of_a_request_is_that_of_one_loop() -> None:
    rounds = [{"requests_per_s": 10_000.0}, {"requests_per_s": 20_000.0}, {"requests_per_s": 40_000.0}]
    assert time_of_request("batches", rounds) == pytest.approx(50)
    assert time_of_request("workers", rounds) == pytest.approx(100)  # each of the two answers every other one
    assert time_of_request("embedded", [{"java_produced_per_s": 1.0}]) is None


def test_the_table_has_microseconds_where_requests_were_counted() -> None:
    shares = {"waiting": 0.25, "core": 0.75}
    profiled = row(profile={"batches": shares, "embedded": shares}, request_us={"batches": 40.0, "embedded": None})
    result = {"machine": MACHINE, "rows": [profiled], "measured": "now", "rounds": 1, "seconds": 1}
    of_batches, of_embedded = (
        [cell.strip() for cell in line.split("|")[2:-1]] for line in table(result).splitlines()[-2:]
    )
    assert of_batches[:3] == ["Batches", "40.0", "10.0"]
    assert of_batches[7] == "0.0"
    assert "30.0" in of_batches
    assert of_embedded[:3] == ["Embedded", "", "25%"]
