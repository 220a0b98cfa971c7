"""A task of the sink while its broker is killed: every row stored once and in order, or an error in time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from batches import read_values
from broker_process import BrokerProcess
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.spark import cluster
from korvet_fast.spark.options import Use, parse
from korvet_fast.spark.sink import BatchSink

PAGES = 30
ROWS = 200  # of a page


@pytest.fixture(autouse=True)
def no_connections_are_left() -> Iterator[None]:
    """A worker process keeps its connections; this one goes on to other tests."""
    yield
    for kept in cluster._own.__dict__.pop("clusters", {}).values():
        kept.close()


def sink(broker: BrokerProcess, **given: str) -> BatchSink:
    """Small batches, so that several are on their way at a time."""
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "t", "kafka.batch.size": "2000", **given}
    return BatchSink(parse(options, Use.WRITE), StructType().add("value", "string"))


def pages() -> Iterator[pa.RecordBatch]:
    for number in range(PAGES):
        yield pa.record_batch({"value": [str(number * ROWS + at) for at in range(ROWS)]})


def stored(broker: BrokerProcess) -> list[bytes]:
    """The records that a stopped broker left of the one partition, in order."""
    assert broker.process is None
    return read_values((Path(broker.store.removeprefix("file:")) / "t-0" / f"{0:020}.log").read_bytes())


def test_a_broker_that_is_killed_and_comes_back(start_broker: Callable[..., BrokerProcess]) -> None:
    broker = start_broker()

    def killing() -> Iterator[pa.RecordBatch]:
        for number, page in enumerate(pages()):
            yield page  # when it comes back here, requests are still without an answer
            if number in (0, 7, 20):
                broker.kill()
                broker.start()

    done = sink(broker).write(killing())
    assert done.records == PAGES * ROWS
    broker.stop()
    assert stored(broker) == [str(number).encode() for number in range(PAGES * ROWS)]


@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_a_broker_that_is_gone(start_broker: Callable[..., BrokerProcess], idempotent: str) -> None:
    broker = start_broker()

    def killing() -> Iterator[pa.RecordBatch]:
        for number, page in enumerate(pages()):
            if number == 3:
                broker.kill()
            yield page

    # Longer than a busy machine takes for the pages before.
    limits = {"kafka.delivery.timeout.ms": "10000", "kafka.request.timeout.ms": "5000"}
    words = r"for partition 0 of topic 't': not stored within kafka\.delivery\.timeout\.ms \(10 s\); .*127\.0\.0\.1"
    with pytest.raises(ClientError, match=words):
        sink(broker, **limits, **{"kafka.enable.idempotence": idempotent}).write(killing())
