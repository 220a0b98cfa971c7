"""The lag of a stream, out of its progress."""

import json

import pytest
from pyspark.sql.streaming.listener import SourceProgress

from korvet_fast.spark import source_metrics
from korvet_fast.spark.stream import BEGINNING

END = {BEGINNING: {"t": {"0": 0, "1": 5}}, "t": {"0": 30, "1": 10}}


def test_before_the_first_micro_batch() -> None:
    assert source_metrics(None) == []
    assert source_metrics({"sources": [{"endOffset": None, "latestOffset": None}]}) == [{}]


def test_offsets_behind() -> None:
    source = {"endOffset": END, "latestOffset": {"t": {"0": 90, "1": 10}}}
    lag = {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "60", "avgOffsetsBehindLatest": "30.0"}
    assert source_metrics({"sources": [source]}) == [lag]


def test_a_progress_as_python_has_it() -> None:
    """There Spark has offsets as text, and "None" where there are none."""
    told = dict.fromkeys(("description", "startOffset", "numInputRows", "inputRowsPerSecond", "processedRowsPerSecond"))
    source = SourceProgress.fromJson(told | {"endOffset": END, "latestOffset": json.dumps({"t": {"0": 90, "1": 10}})})
    assert isinstance(source["endOffset"], str)
    assert source_metrics({"sources": [source]})[0]["maxOffsetsBehindLatest"] == "60"
    source["latestOffset"] = "None"
    assert source_metrics({"sources": [source]}) == [{}]


@pytest.mark.parametrize("latest", [None, "0", {}, "None", "null"])
def test_a_source_that_tells_nothing(latest: object) -> None:
    assert source_metrics({"sources": [{"endOffset": END, "latestOffset": latest}]}) == [{}]


def test_a_partition_that_is_new_counts_from_its_beginning() -> None:
    source = {"endOffset": {"t": {"0": 7}}, "latestOffset": {"t": {"0": 7, "1": 4}}}
    assert source_metrics({"sources": [source]})[0]["maxOffsetsBehindLatest"] == "4"
