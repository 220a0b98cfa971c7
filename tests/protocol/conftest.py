"""Fixtures of the protocol's tests."""

from collections.abc import Iterator

import pytest

from broker_process import BrokerProcess
from legacy_broker import SETTINGS, LegacyBroker
from redis_server import RedisServer, find_program, free_port
from second_client import PARTITIONS, set_up


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a topic `wide` of 20,000 partitions."""
    with BrokerProcess(tmp_path_factory.mktemp("wide") / "data", f"max.partitions={PARTITIONS + 2000}") as running:
        row = set_up(running.port, lambda client: client.create("wide", PARTITIONS))
        assert row["error_code"] == 0
        yield running


@pytest.fixture(scope="module", params=["files", "redis"])
def legacy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LegacyBroker]:
    """One broker for all tests of a module; each test uses its own topics."""
    directory, port = tmp_path_factory.mktemp("legacy"), free_port()
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    if request.param == "files":
        with BrokerProcess(directory / "data", *SETTINGS, arguments=arguments) as process:
            yield LegacyBroker(process, port)
    else:
        with (
            RedisServer(find_program("redis-server"), directory / "redis") as server,
            BrokerProcess(directory / "unused", *SETTINGS, store=server.url, arguments=arguments) as process,
        ):
            yield LegacyBroker(process, port)
