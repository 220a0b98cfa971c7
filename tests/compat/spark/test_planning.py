"""The readers against real brokers, without Spark: plans that hold over layouts, restarts and long silences."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadMaxRows

from compat.spark import topics
from compat.spark.scenes import FULL, Scene
from compat.spark.topics import Row
from compat.world import World, open_world
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.spark.options import Use, parse
from korvet_fast.spark.reader import BatchReader
from korvet_fast.spark.stream import StreamReader

COLUMNS = "topic,partition,offset,timestamp,key,value,headers"
LIMIT = 1_000_000  # offsets: about a second where they follow the clock


def rows(reader: BatchReader | StreamReader, tasks: list[Any]) -> list[Row]:
    found = []
    for task in tasks:
        for batch in reader.read(task):
            found += topics.rows_of(batch)
    return sorted(found, key=lambda row: (row.partition, row.offset))


def given(bootstrap: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "columns": COLUMNS, **more}


def test_every_record_once_however_it_is_cut(scene: Scene) -> None:
    for more in ({}, {"minPartitions": "23"}, {"kafka.fetch.max.bytes": "1"}):
        reader = BatchReader(parse(given(scene.bootstrap, subscribe=FULL, **more), Use.READ))
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
    for _ in range(300):  # each about a second of the time that this has taken
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
    reader = BatchReader(parse(given(bootstrap, subscribe="t", **{"kafka.fetch.max.bytes": "1"}), Use.READ))
    (task,) = reader.partitions()
    batches = reader.read(task)
    found = topics.rows_of(next(batches))
    world.broker.kill()
    world.broker.start()
    found += [row for batch in batches for row in topics.rows_of(batch)]
    assert found == expected


def test_a_broker_that_says_nothing_any_more(world: World) -> None:
    bootstrap = world.broker.bootstrap
    topics.create(bootstrap, "t", 1)
    for number in range(3):
        topics.send(bootstrap, "t", "none", iter([(0, None, b"%d" % number, None)]))
    # Longer than a busy machine takes for an answer before that.
    short = {"kafka.fetch.max.bytes": "1", "kafka.request.timeout.ms": "5000", "kafkaConsumer.pollTimeoutMs": "12000"}
    reader = BatchReader(parse(given(bootstrap, subscribe="t", **short), Use.READ))
    (task,) = reader.partitions()
    batches = reader.read(task)
    offset = topics.rows_of(next(batches))[-1].offset
    world.broker.pause()
    try:
        with pytest.raises(ClientError) as failure:
            for batch in batches:  # one more may be there already
                offset = topics.rows_of(batch)[-1].offset
    finally:
        world.broker.resume()
    place, _, why = str(failure.value).partition(
        " on: nothing came within 12 s (option 'kafkaConsumer.pollTimeoutMs'); "
    )
    assert place == f"partition 0 of topic 't' cannot be read from offset {offset + 1}"
    assert bootstrap in why


@pytest.mark.parametrize("scene", ["kafka"], indirect=True)
def test_transactions(scene: Scene) -> None:
    """Aborted transactions, and one that is not over: read_committed sees neither."""
    topics.create(scene.bootstrap, "transactions", 1)
    settings = {"bootstrap.servers": scene.bootstrap, "transactional.id": "t", "linger.ms": 0}
    producer = Producer(settings)
    producer.init_transactions(60)
    kept, given_up = [], []
    for number in range(20):
        producer.begin_transaction()
        for each in range(3):
            producer.produce("transactions", b"%d %d" % (number, each), partition=0)
        if number % 3 == 1:
            producer.flush(60)
            producer.abort_transaction(60)
            given_up += [b"%d %d" % (number, each) for each in range(3)]
        else:
            producer.commit_transaction(60)
            kept += [b"%d %d" % (number, each) for each in range(3)]
    producer.begin_transaction()
    producer.produce("transactions", b"open", partition=0)
    assert producer.flush(60) == 0
    for isolation, expected in (("read_committed", kept), ("read_uncommitted", [*kept, *given_up, b"open"])):
        for more in ({}, {"kafka.fetch.max.bytes": "1"}, {"minPartitions": "9"}):
            level = {"kafka.isolation.level": isolation, **more}
            reader = BatchReader(parse(given(scene.bootstrap, subscribe="transactions", **level), Use.READ))
            found = [row.value for row in rows(reader, reader.partitions())]
            assert sorted(found) == sorted(expected), (isolation, more)
    producer.abort_transaction(60)
