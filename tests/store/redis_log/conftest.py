"""Redis stores of both layouts on both servers. Tests run on the loop that the broker runs on."""

import inspect
from collections.abc import Callable, Iterator

import pytest
import uvloop

from faults.redis.proxy import RedisProxy
from redis_server import PROGRAMS, RedisServer, find_program
from store.conftest import LOG_FORMATS
from store.engines import RedisEngine
from store.redis_log.redis_namespace import RedisNamespace


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    uvloop.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(params=LOG_FORMATS)
def layout(request: pytest.FixtureRequest) -> str:
    """Each layout."""
    name: str = request.param
    return name


@pytest.fixture
def redis_program() -> str:
    """One is enough here: the contract's tests run on both."""
    return find_program(PROGRAMS[1])


@pytest.fixture
def place(layout: str, shared_redis: Callable[[str], RedisServer]) -> RedisNamespace:
    """Keys of the test's own on a server that others use too."""
    server = shared_redis(PROGRAMS[1])
    return RedisNamespace(server, RedisEngine(server.url, LOG_FORMATS[layout]))


@pytest.fixture
def own_place(redis_server: RedisServer, layout: str) -> RedisNamespace:
    """A server of the test's own."""
    return RedisNamespace(redis_server, RedisEngine(redis_server.url, LOG_FORMATS[layout]))


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[RedisProxy]:
    """In front of the test's own server."""
    with RedisProxy(redis_server.port) as running:
        yield running
