"""Groups under faults. One Redis program will do: what differs between them, tests/faults/redis tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from redis_server import PROGRAMS, find_program, free_port


@pytest.fixture
def redis_program() -> str:
    return find_program(PROGRAMS[0])


@pytest.fixture
def topic() -> str:
    return "t"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers over a store's URL (None: over a directory) with `name=value` settings; they end with the test."""
    started: list[BrokerProcess] = []

    def start(url: str | None, *settings: str, before: tuple[str, ...] = ()) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / "data", *settings, store=url, before=before)
        broker.port = free_port()
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.kill()
        print(f"broker at {broker.bootstrap}:\n", *broker.log[-100:])  # shown where the test failed
    assert not [line for broker in started for line in broker.log if "Traceback" in line]
