"""A broker over each store, and Apache Kafka, each with the topic that has everything in it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.kafka.broker import Kafka
from benchmarks.peers.process import PeerError
from compat.spark import topics
from compat.world import STORES, open_world
from redis_server import free_port
from requirement import missing

BROKERS = (*STORES, "kafka")
FULL = "full"  # the topic


class Scene(NamedTuple):
    """`rows`: of the topic FULL. `place`: for what a test writes."""

    broker: str
    bootstrap: str
    rows: list[topics.Row]
    place: Path


@contextmanager
def open_scene(broker: str, place: Path) -> Iterator[Scene]:
    """One of BROKERS."""
    with ExitStack() as ending:
        if broker == "kafka":
            bootstrap = ending.enter_context(_kafka(place)).address
        else:
            bootstrap = ending.enter_context(open_world(broker, place)).broker.bootstrap
        yield Scene(broker, bootstrap, topics.fill(bootstrap, FULL), place)


@contextmanager
def _kafka(place: Path) -> Iterator[Kafka]:
    try:
        with Kafka(place / "kafka", (free_port(), free_port())) as kafka:
            yield kafka
    except PeerError as error:
        missing(str(error))
