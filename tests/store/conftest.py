"""The engines that the contract is tested on, and tests that are coroutines."""

import asyncio
import inspect
from pathlib import Path

import pytest

from store.engines import SEED, EmbeddedEngine, Engine


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(params=["embedded", "embedded-faulty"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Every engine, and every engine again behind delays (their seed: KORVET_TEST_SEED)."""
    faulty = request.param.endswith("faulty")
    if faulty:
        print(f"KORVET_TEST_SEED={SEED}")
    return Engine(EmbeddedEngine(tmp_path / "data"), SEED if faulty else None)


@pytest.fixture
def embedded(tmp_path: Path) -> EmbeddedEngine:
    """The embedded engine alone, for what only files can suffer."""
    return EmbeddedEngine(tmp_path / "data")
