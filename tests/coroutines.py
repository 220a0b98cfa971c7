"""Tests that are coroutines: how pytest runs them."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine

import pytest

# Seconds that a test may take, as pytest-timeout found them for it: 0 without an end.
TIMEOUT = pytest.StashKey[float]()


async def _timed(test: Awaitable[None], seconds: float) -> None:
    """End a test that hangs: pytest's own alarm raises in whatever task is running, and may end another one only."""
    async with asyncio.timeout(seconds or None):
        await test


def run_coroutine_test(item: pytest.Function, run: Callable[[Coroutine[None, None, None]], None]) -> bool | None:
    """Run a test that is a coroutine by `run`, in a loop of its own; None: it is none (`pytest_pyfunc_call`)."""
    if not inspect.iscoroutinefunction(item.obj):
        return None
    names = item._fixtureinfo.argnames
    run(_timed(item.obj(**{name: item.funcargs[name] for name in names}), item.stash.get(TIMEOUT, 0)))
    return True
