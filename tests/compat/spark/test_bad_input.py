"""Mistakes of people and machines, and the one sentence for each: it names option, topic, partition and offset.

The options themselves are tested in tests/unit; here are those that need a broker, seen through Spark.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from benchmarks.peers.spark import program
from broker_process import BrokerProcess
from compat.spark import topics

OURS = "ClientError|Unreachable|BrokerError|SettingError|CodecError"
ROWS = 50_000
LIMIT = 5.0  # seconds, the option kafkaConsumer.pollTimeoutMs
SLACK = 60.0  # seconds more, for Spark itself and a busy machine: what has to be seen is that it ends


@pytest.fixture(scope="module")
def full(broker: BrokerProcess) -> str:
    """A topic of two partitions, offsets 0 to ROWS / 2 in each, the first ten of partition 1 deleted."""
    topic = f"t-{uuid4().hex}"
    topics.create(broker.bootstrap, topic, 2)
    records = ((number % 2, None, b"%d" % number, None) for number in range(ROWS))
    topics.send(broker.bootstrap, topic, "none", records)
    topics.delete_before(broker.bootstrap, topic, 1, 10)
    return topic


def sentence(error: PySparkException) -> str:
    """The line of ours in what Spark says; Spark puts the stack of its own and of Python around it."""
    found = re.findall(rf"(?:^|\s)(?:\w+\.)*(?:{OURS}): (.+)$", str(error), re.MULTILINE)
    assert found, f"none of our errors is in:\n{error}"
    return str(found[-1])


def read(spark: SparkSession, bootstrap: str, **options: str) -> str:
    """The sentence that a read ends with."""
    given = {"kafka.bootstrap.servers": bootstrap, "kafkaConsumer.pollTimeoutMs": f"{LIMIT * 1000:.0f}"} | options
    source = {"format": "korvet", "options": given}
    began = time.monotonic()
    with pytest.raises(PySparkException) as raised:
        program.copy(spark, {"source": source, "sink": {"format": "noop", "mode": "overwrite"}})
    assert time.monotonic() - began < LIMIT + SLACK
    return sentence(raised.value)


def write(spark: SparkSession, bootstrap: str, select: list[str], **options: str) -> str:
    """The sentence that a write ends with."""
    sink = {"format": "korvet", "options": {"kafka.bootstrap.servers": bootstrap} | options}
    with pytest.raises(PySparkException) as raised:
        program.copy(spark, {"source": {"rows": 10, "select": select}, "sink": sink})
    return sentence(raised.value)


def test_reads(spark: SparkSession, broker: BrokerProcess, full: str) -> None:
    at = broker.bootstrap
    assert "'no-such-topic'" in read(spark, at, subscribe="no-such-topic")
    assert "'kafka.bootstrap.servers'" in read(spark, "", subscribe=full)
    assert "'subscribe'" in read(spark, at)
    assert "did you mean 'startingOffsets'" in read(spark, at, subscribe=full, startingOffset="earliest")
    assert "'startingOffsets'" in read(spark, at, subscribe=full, startingOffsets="tomorrow")
    assert "'endingOffsets'" in read(spark, at, subscribe=full, endingOffsets="earliest")
    said = read(spark, at, assign=f'{{"{full}": [7]}}')
    assert full in said
    assert "partition 7" in said
    assert "127.0.0.1:1" in read(spark, "127.0.0.1:1", subscribe=full, **{"kafka.request.timeout.ms": "2000"})


def test_offsets_that_are_not_there(spark: SparkSession, broker: BrokerProcess, full: str) -> None:
    below = read(spark, broker.bootstrap, subscribe=full, startingOffsets=f'{{"{full}": {{"0": 0, "1": 3}}}}')
    assert f"partition 1 of topic '{full}' begins at offset 10, and was to be read from 3 on: 7 offsets" in below
    assert "failOnDataLoss" in below
    end = ROWS // 2
    above = read(spark, broker.bootstrap, subscribe=full, endingOffsets=f'{{"{full}": {{"0": {end + 5}, "1": -1}}}}')
    assert f"partition 0 of topic '{full}' ends at offset {end}, and was to be read from 0 to {end + 5}:" in above


def test_rows_that_are_no_records(spark: SparkSession, broker: BrokerProcess, full: str) -> None:
    at, value = broker.bootstrap, "cast(id as string) as value"
    assert "'value'" in write(spark, at, ["id"], topic=full)
    assert "'value'" in write(spark, at, ["id as value"], topic=full)
    assert "'topic'" in write(spark, at, [value])
    assert "partition" in write(spark, at, [value, "9 as partition"], topic=full)
    assert "row" in write(spark, at, [value, "cast(null as string) as topic"])
    assert "'kafka.acks'" in write(spark, at, [value], **{"topic": full, "kafka.acks": "most"})


@pytest.fixture
def large(start_broker: Callable[..., BrokerProcess]) -> Iterator[tuple[BrokerProcess, str]]:
    """A broker of the test's own, and a topic of 64 MB in it."""
    broker, topic = start_broker(), f"t-{uuid4().hex}"
    topics.create(broker.bootstrap, topic, 1)
    for _ in range(4):
        topics.send(broker.bootstrap, topic, "none", ((0, None, b"x" * 100_000, None) for _ in range(160)))
    process = broker.process
    assert process is not None
    yield broker, topic
    process.send_signal(signal.SIGCONT)  # nothing, if it has ended


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_broker_that_dies_in_mid_read(
    spark: SparkSession, large: tuple[BrokerProcess, str], how: signal.Signals
) -> None:
    """Killed, or standing still, when Spark has the first rows: the task gives up after the time the option says."""
    broker, topic = large
    pid = broker.pid

    def stop(rows: Iterator[Any]) -> None:
        for number, _ in enumerate(rows):
            if number == 0:
                os.kill(pid, how)

    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "kafkaConsumer.pollTimeoutMs": "5000"}
    frame = program.open_source(spark, {"format": "korvet", "options": options, "select": ["value"]})
    began = time.monotonic()
    with pytest.raises(PySparkException) as raised:
        frame.rdd.foreachPartition(stop)
    assert time.monotonic() - began < LIMIT + SLACK
    said = sentence(raised.value)
    assert re.search(rf"partition 0 of topic '{topic}' cannot be read from offset \d+ on", said), said
    assert "'kafkaConsumer.pollTimeoutMs'" in said


def test_a_damaged_batch(spark: SparkSession, start_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    """A byte changes on the disk under a broker: the batch is named, and nothing of it is given out."""
    broker, topic = start_broker(), f"t-{uuid4().hex}"
    topics.create(broker.bootstrap, topic, 1)
    for word in (b"first", b"second", b"third"):
        topics.send(broker.bootstrap, topic, "none", ((0, None, word, None) for _ in range(10)))
    segment = tmp_path / "data" / f"{topic}-0" / f"{0:020}.log"
    at = segment.read_bytes().index(b"second")
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(b"S")
    said = read(spark, broker.bootstrap, subscribe=topic)
    assert re.search(rf"partition 0 of topic '{topic}'.* offset 10", said), said
    assert "damaged" in said
