"""Fixtures of the protocol's tests."""

from collections.abc import Iterator

import pytest

from broker_process import BrokerProcess
from second_client import PARTITIONS, set_up


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a topic `wide` of 20,000 partitions."""
    with BrokerProcess(tmp_path_factory.mktemp("wide") / "data", f"max.partitions={PARTITIONS + 2000}") as running:
        row = set_up(running.port, lambda client: client.create("wide", PARTITIONS))
        assert row["error_code"] == 0
        yield running
