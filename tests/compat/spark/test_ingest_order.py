"""`ingest --key`: records of one key are in the order of the rows in the files, whatever tasks of Spark read them."""

from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.records import read
from korvet_fast.spark import jobs

ROWS, KEYS, PARTITIONS, SPLITS = 600_000, 16, 4, 8
SPLIT_BYTES = "spark.sql.files.maxPartitionBytes"


@pytest.fixture
def splits(spark: SparkSession, tmp_path: Path) -> Path:
    """A directory with one file, which Spark reads in SPLITS tasks, and a second one, which comes after it."""
    spark.conf.set(SPLIT_BYTES, str(write_files(tmp_path, ROWS) // SPLITS))
    return tmp_path


def write_files(place: Path, rows: int) -> int:
    """Two files with rows of a key, missing now and then, and a number that counts up; returns their bytes."""
    lines = [f"{number % KEYS if number % 97 else ''},{number}\n" for number in range(rows)]
    half = len(lines) - len(lines) // 10
    (place / "a.csv").write_text("key,number\n" + "".join(lines[:half]))
    (place / "b.csv").write_text("key,number\n" + "".join(lines[half:]))
    return sum(map(len, lines))


def test_each_key_has_the_order_of_the_files(spark: SparkSession, broker: BrokerProcess, splits: Path) -> None:
    topics.create(broker.bootstrap, "ordered", PARTITIONS)
    try:
        files = [str(splits / name) for name in ("b.csv", "a.csv")]  # their paths count, not this order
        rows = jobs.read_files(spark, files, "csv", None, {})
        assert rows.rdd.getNumPartitions() >= SPLITS
        records = jobs.make_records(rows, "key", "number", ordered=True)
        jobs.write_records(records, broker.bootstrap, "ordered", {})
    finally:
        spark.conf.unset(SPLIT_BYTES)
    found = read(broker.bootstrap, "ordered")
    numbers = defaultdict(list)
    for partition, records_ in found.items():
        for key, value, _ in records_:
            assert value is not None
            numbers[partition if key is None else key, key is None].append(int(value))
    assert sorted(number for each in numbers.values() for number in each) == list(range(ROWS))
    keyed = {key: each for (key, without), each in numbers.items() if not without}
    assert len(keyed) == KEYS
    assert all(each == sorted(each) for each in keyed.values())


def test_no_shuffle_where_it_is_not_needed(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path, 1_000)
    rows = jobs.read_files(spark, [str(tmp_path / "a.csv")], "csv", None, {})
    assert rows.rdd.getNumPartitions() == 1

    def plan(ordered: bool, *, several: bool = False) -> str:
        files = [str(tmp_path)] if several else [str(tmp_path / "a.csv")]
        frame = jobs.read_files(spark, files, "csv", None, {})
        found: str = jobs.make_records(frame, "key", "number", ordered=ordered)._jdf.queryExecution().toString()
        return found

    assert "Exchange" not in plan(True)
    assert "Exchange" not in plan(False, several=True)
    assert "Exchange" in plan(True, several=True)
