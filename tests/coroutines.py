"""Tests that are coroutines: how pytest runs them."""

import inspect
from collections.abc import Callable, Coroutine

import pytest


def run_coroutine_test(item: pytest.Function, run: Callable[[Coroutine[None, None, None]], None]) -> bool | None:
    """Run a test that is a coroutine by `run`, in a loop of its own; None: it is none (`pytest_pyfunc_call`)."""
    if not inspect.iscoroutinefunction(item.obj):
        return None
    names = item._fixtureinfo.argnames
    run(item.obj(**{name: item.funcargs[name] for name in names}))
    return True
