"""Fixtures that several folders share: broker processes, Redis servers; and tests that are coroutines."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.core
import pytest
import pytest_timeout

from broker_process import RUNNING, BrokerProcess
from coroutines import TIMEOUT, run_coroutine_test
from faults.several import Several, open_several
from redis_cluster import Cluster
from redis_sentinels import Sentinels
from redis_server import PROGRAMS, RedisServer, find_program
from twin.profile import SEED

# No test asserts how fast the machine is; an example that fails is printed so that it can be run again.
quick_enough = [hypothesis.HealthCheck.too_slow]  # it wants ten examples within a second
hypothesis.settings.register_profile("here", deadline=None, print_blob=True, suppress_health_check=quick_enough)
hypothesis.settings.load_profile("here")
if SEED is not None:
    hypothesis.core.global_force_seed = int(SEED)  # as the option --hypothesis-seed does, in every worker

# A shell that runs the tests in the background has them ignore it, and the programs they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The modules that take half a minute or more, the longest first: these wait, and beside them the processors are free.
SLOW = (
    "tests/compat/test_matrix.py",
    "tests/faults/test_kill_under_load.py",
    "tests/compat/test_consumer_protocol.py",
    "tests/faults/redis/test_brokers.py",
    "tests/faults/groups/test_wall_clock.py",
    "tests/faults/test_groups_under_kill.py",
    "tests/unit/test_site.py",
    "tests/faults/redis/test_slow_flush.py",
    "tests/compat/test_java_groups.py",
    "tests/compat/test_groups_several.py",
    "tests/faults/groups/test_one_way.py",
    "tests/faults/redis/test_promises.py",
    "tests/unit/core/groups/classic/test_stateful.py",
    "tests/faults/redis/test_failover.py",
    "tests/faults/redis/test_commits.py",
    "tests/examples/test_orders_service.py",
    "tests/protocol/test_tls_clients.py",
    "tests/faults/groups/test_redis_stands_still.py",
    "tests/protocol/test_text_bad_input.py",
    "tests/faults/replication/test_rounds.py",
    "tests/protocol/test_costs.py",
    "tests/faults/groups/test_sleeping_coordinator.py",
    "tests/faults/test_growth_producers.py",
    "tests/unit/core/groups/consumer/test_stateful.py",
    "tests/store/redis_connection/test_topology.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each worker slow modules first, in turns: a slow test that begins last leaves the other workers idle.

    With `--dist worksteal` each worker begins with an equal run of the collected tests.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    firsts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    modules: dict[str, list[pytest.Item]] = {name: [] for name in SLOW}
    rest: list[pytest.Item] = []
    for item in items:
        modules.get(item.nodeid.partition("::")[0], rest).append(item)
    for number, slow in enumerate(filter(None, modules.values())):
        firsts[number % workers].extend(slow)
    left = len(items)
    items.clear()
    for number, first in enumerate(firsts):
        share = left // (workers - number)
        left -= share
        size = max(share - len(first), 0)
        items.extend(first + rest[:size])
        del rest[:size]
    items.extend(rest)


def pytest_collection_finish() -> None:
    """The tests themselves are hundreds of thousands of objects, which no collection of garbage has to visit."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """Garbage is collected as in a process without all these tests; for who measures that, or ends such a freeze."""
    gc.unfreeze()
    yield
    pytest_collection_finish()


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> None:
    """Keep what the alarm of pytest-timeout is set to, which is set as ever: coroutines have a timer of their own."""
    item.stash[TIMEOUT] = settings.timeout or 0


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_coroutine_test(pyfuncitem, asyncio.run)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last lines of each broker beside a failure: some failures do not come again."""
    report = yield
    if report.failed:
        for broker in RUNNING:
            if broker.log:
                report.sections.append((f"log of the broker at port {broker.port}", "".join(broker.log[-30:])))
    return report


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


@pytest.fixture(params=["entries", "workers"])
def several(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Several]:
    """Starts several brokers of one cluster; a test runs over both, or over those of `ENGINES` that it names."""
    with open_several(request.param, tmp_path) as start:
        yield start


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
