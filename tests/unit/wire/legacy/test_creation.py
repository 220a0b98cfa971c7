"""Who makes new topics faster than `controller.mutation.rate` waits: one at a time, and not while memory is short."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core_world import World, run_broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.legacy.api.produce import produce
from korvet_fast.wire.legacy.body import ProduceBody
from korvet_fast.wire.legacy.creation import create_topic
from korvet_fast.wire.legacy.requests import REQUESTS
from korvet_fast.wire.legacy.session import Service, Session
from korvet_reference.legacy_client import encode_message

MANY = 50


class Timers:
    """In place of the clock's: `pending` are called when a test says so, with the time that has passed then."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pending: list[tuple[float, Callable[[], None]]] = []
        self._world = world
        monkeypatch.setattr(world.clock, "call_later", self._call_later)

    def _call_later(self, seconds: float, work: Callable[[], None]) -> asyncio.TimerHandle:
        self.pending.append((seconds, work))
        return asyncio.get_running_loop().call_later(3600, lambda: None)

    def fire(self) -> None:
        """Let the time of all pending timers pass."""
        fired, self.pending = self.pending, []
        self._world.clock.seconds += max(seconds for seconds, _ in fired)
        for _, work in fired:
            work()

    async def one_waits(self, tasks: "list[asyncio.Task[Any]]") -> bool:
        """Wait until one of these waits for the time to pass; False: all have ended."""
        async with asyncio.timeout(60):
            while not self.pending and not all(task.done() for task in tasks):
                await asyncio.sleep(0.001)
        assert len(self.pending) <= 1
        return bool(self.pending)


@asynccontextmanager
async def run_service(data: Path, *settings: str) -> AsyncIterator[tuple[World, Service]]:
    async with run_broker(data, "controller.mutation.rate=1", "controller.mutation.burst=1", *settings) as world:
        with FairExecutor(1, "check") as workers:
            yield world, Service(world.broker, REQUESTS, workers)


def begin(service: Service, name: str) -> "tuple[Session, asyncio.Task[Any]]":
    session = Session(service, "peer")
    return session, asyncio.create_task(create_topic(session, name, 1))


async def test_one_waits_for_the_quota_at_a_time_and_all_get_their_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_service(tmp_path) as (world, service):
        timers = Timers(world, monkeypatch)
        creating = [begin(service, f"t{number}")[1] for number in range(MANY)]
        looks = 0
        while await timers.one_waits(creating):
            looks += 1
            timers.fire()
        assert MANY - 1 <= looks <= 2 * MANY
        assert {(await task).name for task in creating} == {f"t{number}" for number in range(MANY)}


async def test_who_waits_gives_up_when_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_service(tmp_path) as (world, service):
        timers = Timers(world, monkeypatch)
        await begin(service, "first")[1]
        waiting = [begin(service, f"t{number}") for number in range(3)]
        assert await timers.one_waits([task for _, task in waiting])
        for session, _ in waiting:
            session.release_memory()
        for session, task in waiting:
            with pytest.raises(KorvetError, match="memory is short") as refused:
                await task
            assert refused.value.error == Errors.UNKNOWN_TOPIC_OR_PARTITION
            assert not session.delayed
        timers.pending.clear()
        _, task = begin(service, "later")
        while await timers.one_waits([task]):
            timers.fire()
        assert (await task).name == "later"


async def test_who_sends_nothing_more_still_gets_what_ten_seconds_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_service(tmp_path) as (world, service):
        timers = Timers(world, monkeypatch)
        await begin(service, "first")[1]
        session, task = begin(service, "second")
        assert await timers.one_waits([task])
        session.close()
        while await timers.one_waits([task]):
            timers.fire()
        assert (await task).name == "second"
        many = [begin(service, f"t{number}")[1] for number in range(20)]
        closed = Session(service, "peer")
        closed.close()
        last = asyncio.create_task(create_topic(closed, "never", 1))
        while await timers.one_waits([*many, last]):
            timers.fire()
        assert [(await task).name for task in many] == [f"t{number}" for number in range(20)]
        with pytest.raises(KorvetError, match="its client is gone"):
            await last


async def test_the_topics_of_one_request_have_the_ten_seconds_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_service(tmp_path) as (world, service):
        timers = Timers(world, monkeypatch)
        session = Session(service, "peer")
        bodies = [ProduceBody(f"t{number}", 0, memoryview(encode_message(b"v"))) for number in range(100)]
        task = asyncio.create_task(produce(session, bodies, lambda: None))
        assert await timers.one_waits([task])
        session.close()
        while await timers.one_waits([task]):
            timers.fire()
        with pytest.raises(CloseConnection, match="its client is gone"):
            await task
        assert 8 <= len(list(world.broker.topics)) <= 13
