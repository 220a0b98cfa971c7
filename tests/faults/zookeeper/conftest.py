"""A ZooKeeper for all tests of this folder, each below a node of its own."""

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from korvet_fast.zookeeper.connect_string import ConnectString, read_connect_string
from zookeeper_server import ZooKeeperServer, connect


@pytest.fixture(scope="session")
def shared_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def where(shared_zookeeper: ZooKeeperServer, request: pytest.FixtureRequest) -> ConnectString:
    """A chroot of the test's own, which does not exist yet."""
    return read_connect_string(f"{shared_zookeeper.address}/{request.node.name}")


@pytest.fixture
def eyes(shared_zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """A client that looks at the nodes."""
    with connect(shared_zookeeper) as client:
        yield client
