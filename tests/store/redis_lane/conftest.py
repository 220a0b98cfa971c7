"""Tests that are coroutines run on the loop that the broker runs on."""

import inspect
from collections.abc import Iterator

import pytest
import uvloop

from faults.redis.proxy import RedisProxy
from redis_server import RedisServer


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    uvloop.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[RedisProxy]:
    """In front of `redis_server`."""
    with RedisProxy(redis_server.port) as running:
        yield running
