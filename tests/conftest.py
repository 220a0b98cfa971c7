"""What several folders share: broker processes, Redis servers; and tests that are coroutines."""

import asyncio
import inspect
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from broker_process import BrokerProcess
from redis_cluster import Cluster
from redis_sentinels import Sentinels
from redis_server import PROGRAMS, RedisServer, find_program

# No test asserts how fast the machine is; an example that fails is printed so that it can be run again.
hypothesis.settings.register_profile("here", deadline=None, print_blob=True)
hypothesis.settings.load_profile("here")

# A shell that runs the tests in the background has them ignore it, and the programs they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


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


@pytest.fixture(params=PROGRAMS)
def redis_program(request: pytest.FixtureRequest) -> str:
    """The path of a redis-server: a test that asks for it (or for what stands on it) runs with each of both."""
    return find_program(request.param)


@pytest.fixture
def start_redis(redis_program: str, tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Starts servers of the test's own; `start_redis(appendonly="yes")`. They end with the test."""
    started: list[RedisServer] = []

    def start(directory: Path | None = None, **options: Any) -> RedisServer:
        place = directory or tmp_path / f"redis-{len(started)}"
        started.append(RedisServer(redis_program, place, **options))
        return started[-1].start()

    yield start
    for server in started:
        server.kill()
        torn = [line for line in server.log.splitlines() if "short read" in line or "incomplete MULTI" in line]
        print(f"Redis at {server.port} found its file torn: {torn}" if torn else "")  # shown where the test failed


@pytest.fixture
def redis_server(start_redis: Callable[..., RedisServer]) -> RedisServer:
    """A server that fsyncs every write before its answer."""
    return start_redis(appendonly="yes")


@pytest.fixture
def redis_sentinels(redis_program: str, tmp_path: Path) -> Iterator[Sentinels]:
    """A master, a replica and three Sentinels."""
    sentinels = Sentinels(redis_program, tmp_path / "sentinels", appendonly="yes")
    try:
        yield sentinels.start()
    finally:
        sentinels.stop()


@pytest.fixture
def redis_cluster(redis_program: str, tmp_path: Path) -> Iterator[Cluster]:
    """A Cluster of three masters."""
    cluster = Cluster(redis_program, tmp_path / "cluster", appendonly="yes")
    try:
        yield cluster.start()
    finally:
        cluster.stop()
