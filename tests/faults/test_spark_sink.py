"""A task of the Spark sink while the leaders of its partitions die and come back: each row is stored once, in order."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from compat.spark.records import read
from faults.redis.load import create_topic
from faults.several import ENGINES, Several
from korvet_fast.spark import cluster
from korvet_fast.spark.options import Use, parse
from korvet_fast.spark.sink import BatchSink

PAGES = 40
ROWS = 300  # of a page
PARTITIONS = 6
# Dead after a second and a half of silence: the machine that runs this may be slow, and a false alarm is no error.
QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500")


@pytest.fixture(autouse=True)
def no_connections_are_left() -> Iterator[None]:
    """A worker process keeps its connections; this one goes on to other tests."""
    yield
    for kept in cluster._own.__dict__.pop("clusters", {}).values():
        kept.close()


@pytest.mark.parametrize("several", ENGINES, indirect=True)
def test_leaders_die_and_come_back(several: Several) -> None:
    brokers = several(3, *QUICK)
    create_topic(brokers[0].bootstrap, "t", PARTITIONS)

    def pages() -> Iterator[pa.RecordBatch]:
        for page in range(PAGES):
            numbers = range(page * ROWS, (page + 1) * ROWS)
            yield pa.record_batch(
                {
                    "value": [str(number) for number in numbers],
                    "partition": pa.array([number % PARTITIONS for number in numbers], pa.int32()),
                }
            )
            if page in (5, 15):  # requests are on their way to all three
                brokers[page % 3].kill()
            if page in (10, 20):
                brokers[(page - 5) % 3].start()

    addresses = ",".join(broker.bootstrap for broker in brokers)
    given = {"kafka.bootstrap.servers": addresses, "topic": "t", "kafka.batch.size": "400"}
    schema = StructType().add("value", "string").add("partition", "integer")
    done = BatchSink(parse(given, Use.WRITE), schema).write(pages())
    assert done.records == PAGES * ROWS
    found = {number: [value for _, value, _ in rows] for number, rows in read(addresses, "t").items()}
    assert found == {
        number: [str(each).encode() for each in range(number, PAGES * ROWS, PARTITIONS)] for number in range(PARTITIONS)
    }
