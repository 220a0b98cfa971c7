"""Tests that are coroutines run on the loop that the broker runs on."""

import asyncio
import inspect
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from faults.redis.proxy import RedisProxy
from redis_server import RedisServer

LIMIT = 240.0  # seconds for a test: a busy machine may take long


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    uvloop.run(_limit(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})))
    return True


async def _limit(test: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(LIMIT):  # pytest-timeout's signal does not wake uvloop
        await test


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[RedisProxy]:
    """In front of `redis_server`."""
    with RedisProxy(redis_server.port) as running:
        yield running
