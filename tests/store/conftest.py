"""The engines that the contract is tested on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from korvet_fast.store.types import LogFormat
from redis_server import PROGRAMS, RedisServer, find_program
from store.engines import SEED, EmbeddedEngine, Engine, RedisEngine, WorkersEngine
from store.worker_process import WorkerProcess

LOG_FORMATS = {"entries": LogFormat(10, entries_layout=True), "batches": LogFormat(10)}
ENGINES = [
    "embedded",
    "embedded-faulty",
    "workers",
    "workers-asking",
    *(f"{program}-{layout}" for program in PROGRAMS for layout in LOG_FORMATS),
    *(f"{PROGRAMS[0]}-{layout}-faulty" for layout in LOG_FORMATS),
]


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RedisServer]]:
    """Servers for all tests that use keys of their own, by program, started when first asked for."""
    running: dict[str, RedisServer] = {}

    def find(program: str) -> RedisServer:
        if program not in running:
            place = tmp_path_factory.mktemp(program)
            running[program] = RedisServer(find_program(program), place, appendonly="yes").start()
        return running[program]

    yield find
    for server in running.values():
        server.stop()


def make_engine(name: str, directory: Path, find_redis: Callable[[str], RedisServer]) -> Engine:
    """An engine by its name in `ENGINES`."""
    faulty = name.endswith("-faulty")
    if faulty:
        print(f"KORVET_TEST_SEED={SEED}")
    name = name.removesuffix("-faulty")
    if name.startswith("workers"):
        return Engine(WorkersEngine(directory), None)
    if name == "embedded":
        return Engine(EmbeddedEngine(directory), SEED if faulty else None)
    program, _, layout = name.rpartition("-")
    return Engine(RedisEngine(find_redis(program).url, LOG_FORMATS[layout]), SEED if faulty else None)


@pytest.fixture
def registry_worker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """For the engine `workers-asking`: another process, which has the registry."""
    if request.node.callspec.params.get("engine") != "workers-asking":
        yield
        return
    (tmp_path / "data").mkdir()
    with WorkerProcess(tmp_path / "data", 2):
        yield


@pytest.fixture(params=ENGINES)
def engine(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    registry_worker: None,
    shared_redis: Callable[[str], RedisServer],
) -> Engine:
    """Every engine, and engines again behind delays (their seed: KORVET_TEST_SEED)."""
    return make_engine(request.param, tmp_path / "data", shared_redis)


@pytest.fixture(params=[name for name in ENGINES if name.startswith("embedded")])
def rewinding_engine(
    request: pytest.FixtureRequest, tmp_path: Path, shared_redis: Callable[[str], RedisServer]
) -> Engine:
    """The engines that can truncate the end of a log: Redis never lowers a stream's last id."""
    return make_engine(request.param, tmp_path / "data", shared_redis)


@pytest.fixture
def embedded(tmp_path: Path) -> EmbeddedEngine:
    """The embedded engine alone, for what only files can suffer."""
    return EmbeddedEngine(tmp_path / "data")
