"""Brokers over Redis servers that misbehave. Each test runs over both layouts, one on each server program.

Which of the layouts is on which of the programs differs from test to test: half of the tests see each combination.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from zlib import crc32

import pytest

from broker_process import BrokerProcess
from redis_server import PROGRAMS, find_program, free_port

LAYOUTS = ("entries", "batches")
PAIRS = list(zip(PROGRAMS, LAYOUTS, strict=True)), list(zip(PROGRAMS, reversed(LAYOUTS), strict=True))
EVERY_PAIR = [(program, layout) for program in PROGRAMS for layout in LAYOUTS]
every_pair = pytest.mark.parametrize("pair", EVERY_PAIR, ids="-".join, indirect=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the two pairs of a test that does not say itself which it wants."""
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "pair" in metafunc.fixturenames and "pair" not in named:
        chosen = PAIRS[crc32(metafunc.function.__name__.encode()) % 2]
        metafunc.parametrize("pair", chosen, ids="-".join, indirect=True)


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A server program and a layout; `every_pair` asks for all four."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def redis_program(pair: tuple[str, str]) -> str:
    return find_program(pair[0])


@pytest.fixture
def layout(pair: tuple[str, str]) -> str:
    return pair[1]


@pytest.fixture
def serve(tmp_path: Path, layout: str) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers over a store's URL, with `name=value` settings; topics get the layout. They end with the test.

    `before`: as in `BrokerProcess`.
    """
    started: list[BrokerProcess] = []

    def start(url: str, *settings: str, before: Sequence[str] = ()) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / "unused", f"storage.layout={layout}", *settings, store=url, before=before)
        broker.port = free_port()
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.kill()
        print(f"broker at {broker.bootstrap}:\n", *broker.log[-100:])  # shown where the test failed
    assert not [line for broker in started for line in broker.log if "Traceback" in line]
