"""Fixtures that several folders share: broker processes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers over `tmp_path/data` (or a given directory) with `name=value` settings; ends them afterwards."""
    started: list[BrokerProcess] = []

    def start(*settings: str, data: Path | None = None) -> BrokerProcess:
        broker = BrokerProcess(data or tmp_path / "data", *settings)
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests of a module; each test uses its own topics."""
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data", "num.partitions=4") as running:
        yield running
