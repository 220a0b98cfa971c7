"""The readers against real brokers, without Spark: plans that hold over layouts, restarts and long silences."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from compat.spark import topics
from compat.spark.scenes import FULL, Scene
from compat.spark.topics import Row
from compat.world import World, open_world
from korvet_fast.spark.options import Use, parse
from korvet_fast.spark.reader import Reader
from korvet_fast.spark.stream import StreamReader

COLUMNS = "topic,partition,offset,timestamp,key,value,headers"
LIMIT = 1_000_000  # offsets: about a second where they follow the clock


def rows(reader: Reader | StreamReader, tasks: list[Any]) -> list[Row]:
    found = []
    for task in tasks:
        for batch in reader.read(task):
            found += topics.rows_of(batch)
    return sorted(found, key=lambda row: (row.partition, row.offset))


def given(bootstrap: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "columns": COLUMNS, **more}


def test_every_record_once_however_it_is_cut(scene: Scene) -> None:
    for more in ({}, {"minPartitions": "23"}, {"kafka.fetch.max.bytes": "1"}):
        reader = Reader(parse(given(scene.bootstrap, subscribe=FULL, **more), Use.READ))
        assert rows(reader, reader.partitions()) == scene.rows


@pytest.fixture(params=["entries", "batches"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with open_world(request.param, tmp_path) as running:
        yield running


def test_a_limited_stream_over_long_silences(world: World) -> None:
    bootstrap = world.broker.bootstrap
    topics.create(bootstrap, "t", 2)
    options = given(bootstrap, subscribe="t", startingOffsets="latest", maxOffsetsPerTrigger=str(LIMIT))
    reader = StreamReader(parse(options, Use.STREAM))
    start = reader.latestOffset({}, ReadMaxRows(LIMIT))  # there is nothing yet, not even an offset
    expected: list[Row] = []
    for word in (b"a", b"b", b"c"):
        burst = ((number % 2, None, word, None) for number in range(100))
        expected += topics.send(bootstrap, "t", "none", burst)
        if world.store == "entries":  # offsets follow the clock: while nothing is written, more go by than the limit
            time.sleep(1.5)
    found: list[Row] = []
    for _ in range(30):
        end = reader.latestOffset(start, ReadMaxRows(LIMIT))
        if end == start:
            break
        found += rows(reader, reader.partitions(start, end))
        start = end
    assert sorted(found) == sorted(expected)
    assert end == start


def test_a_broker_that_is_killed_and_comes_back_between_two_pages(world: World) -> None:
    bootstrap = world.broker.bootstrap
    topics.create(bootstrap, "t", 1)
    expected: list[Row] = []
    for number in range(3):
        burst = ((0, None, b"%d %d" % (number, each), None) for each in range(50))
        expected += topics.send(bootstrap, "t", "none", burst)
    reader = Reader(parse(given(bootstrap, subscribe="t", **{"kafka.fetch.max.bytes": "1"}), Use.READ))
    (task,) = reader.partitions()
    batches = reader.read(task)
    found = topics.rows_of(next(batches))
    world.broker.kill()
    world.broker.start()
    found += [row for batch in batches for row in topics.rows_of(batch)]
    assert found == expected
