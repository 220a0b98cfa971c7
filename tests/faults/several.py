"""Several brokers of one cluster, over whatever they share: a Redis, or one directory."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from broker_process import BrokerProcess
from faults.one_worker import OneWorker
from faults.workers import Workers
from redis_server import PROGRAMS, RedisServer, find_program

Several = Callable[..., list[BrokerProcess]]
# Over Redis with topics of this layout, one on each program; or over files.
ENGINES = {"entries": PROGRAMS[0], "batches": PROGRAMS[1], "workers": ""}


@contextmanager
def open_several(engine: str, place: Path) -> Iterator[Several]:
    """`several(2, *settings)` starts them, numbered from 1. They end with the block. `before`: of `BrokerProcess`."""
    with ExitStack() as ending:

        def start(count: int, *settings: str, before: Sequence[str] = ()) -> list[BrokerProcess]:
            opened = (
                _start_workers(place, count, *settings, before=before)
                if engine == "workers"
                else _start_brokers(place, engine, count, *settings, before=before)
            )
            return ending.enter_context(opened)

        yield start


@contextmanager
def _start_workers(place: Path, count: int, *settings: str, before: Sequence[str]) -> Iterator[list[BrokerProcess]]:
    parent = Workers(place / "data", count, *settings)
    parent.before = before
    with parent:
        try:
            yield [OneWorker(parent, number) for number in range(1, count + 1)]
        finally:
            for pid in (parent.pid, *parent.find_children()):
                os.kill(pid, signal.SIGCONT)  # where a test failed while somebody was paused
    assert not [line for line in parent.log if "Traceback" in line]


@contextmanager
def _start_brokers(
    place: Path, layout: str, count: int, *settings: str, before: Sequence[str]
) -> Iterator[list[BrokerProcess]]:
    server = RedisServer(find_program(ENGINES[layout]), place / "redis", appendonly="yes").start()
    brokers = [
        BrokerProcess(
            place / "unused",
            *(f"node.id={number}", f"storage.layout={layout}", *settings),
            store=server.url,
            before=before,
        )
        for number in range(1, count + 1)
    ]
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()
        server.kill()
    assert not [line for broker in brokers for line in broker.log if "Traceback" in line]
