"""Every test of this folder that uses sockets runs so that it leaves nothing behind."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from producer_leftovers import leftovers, resources, run_clean


@pytest.fixture
def run() -> Iterator[Callable[[Callable[[], Awaitable[Any]]], Any]]:
    """Runs a coroutine function as `run_clean`; at the end of the test nothing may be left either."""
    before = resources()
    yield run_clean
    assert leftovers(before) == []
