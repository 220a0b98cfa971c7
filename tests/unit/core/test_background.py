"""Work in the background that raises something unforeseen is told of, with its traceback, and goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core_world import run_broker, run_shared
from group_broker import until
from shared_store import Server


class Failing:
    """In place of an object's method, until `monkeypatch` is undone: it raises once, then `went_on` counts calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.went_on = 0
        self._failed = False
        self._work: Callable[..., Awaitable[Any]] = getattr(owner, name)
        monkeypatch.setattr(owner, name, self._call)

    async def _call(self, *arguments: Any) -> Any:
        if not self._failed:
            self._failed = True
            raise ZeroDivisionError("unforeseen")
        self.went_on += 1
        return await self._work(*arguments)


def check(caplog: pytest.LogCaptureFixture) -> None:
    """The error was told."""
    assert caplog.text.count("background work failed, and is done again: unforeseen") == 1
    assert "Traceback" in caplog.text


def test_a_broker_goes_on_with_its_heartbeats(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_shared(Server(), "node.id=1") as world:
            failing = Failing(monkeypatch, world.broker.cluster, "poll")
            world.broker.cluster._asked.set()
            await until(lambda: failing._failed)
            world.broker.cluster._asked.set()
            await until(lambda: failing.went_on > 0)

    asyncio.run(run())
    check(caplog)


def test_a_broker_goes_on_to_expire_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "offsets.retention.check.interval.ms=1000") as world:
            failing = Failing(monkeypatch, world.broker.groups, "expire")
            await until(lambda: failing.went_on > 0)

    asyncio.run(run())
    check(caplog)


def test_a_broker_goes_on_to_sample_the_lag_of_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            failing = Failing(monkeypatch, world.broker.groups.lag_history, "sample")
            world.broker.groups.keeps_lag_history = True
            await world.broker.groups.open()
            await until(lambda: failing.went_on > 0)

    asyncio.run(run())
    check(caplog)
