"""Groups under faults. One Redis program will do: what differs between them, tests/faults/redis tests."""

from collections.abc import Callable, Iterator, Sequence
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
    """Starts brokers over a store's URL (None: over a directory) with `name=value` settings; they end with the test.

    `behind`: a second port to listen on, and the one that its clients are told instead.
    """
    started: list[BrokerProcess] = []

    def start(
        url: str | None, *settings: str, before: Sequence[str] = (), behind: tuple[int, int] | None = None
    ) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / "data", *settings, store=url, before=before)
        broker.port = free_port()
        if behind is not None:
            listen, *told = (f"kafka://127.0.0.1:{port}" for port in (behind[0], broker.port, behind[1]))
            broker.arguments = ("--listen", listen, *(word for each in told for word in ("--advertise", each)))
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.kill()
        print(f"broker at {broker.bootstrap}:\n", *broker.log[-100:])  # shown where the test failed
    assert not [line for broker in started for line in broker.log if "Traceback" in line]
