"""A request that names many positions learns once of what other brokers have changed, not once for each position."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core_world import World, run_broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_lock import Changer
from korvet_fast.errors import StoreError
from korvet_fast.wire.legacy.api.fetch import HEAD, NONE, UNKNOWN, WRONG_PARTITION, fetch, multi_fetch
from korvet_fast.wire.legacy.body import FetchBody
from korvet_fast.wire.legacy.requests import REQUESTS
from korvet_fast.wire.legacy.session import Service, Session

MANY = 50


@asynccontextmanager
async def run_session(data: Path) -> AsyncIterator[tuple[World, Session]]:
    """A broker with a topic of 0.7, of which it leads no partition but the first; a connection to it."""
    async with run_broker(data) as world:
        topic = await world.broker.topics.create("t", MANY, {"storage.layout": "legacy"})
        for partition in topic.partitions[1:]:
            partition.leader.resign("the test says so")
        with FairExecutor(1, "check") as workers:
            session = Session(Service(world.broker, REQUESTS, workers), "somebody")
            yield world, session
            session.close()


def count_refreshes(world: World, monkeypatch: pytest.MonkeyPatch, failure: StoreError | None = None) -> list[None]:
    """One `None` for each refresh of the topics from now on; with `failure`, all of them fail."""
    seen: list[None] = []
    refresh = world.broker.topics.refresh

    async def count(changer: Changer | None = None) -> None:
        seen.append(None)
        if failure is not None:
            raise failure
        await refresh(changer)

    monkeypatch.setattr(world.broker.topics, "refresh", count)
    return seen


async def ask(session: Session, *places: tuple[str, int]) -> list[int]:
    """The errors of the answers; no answer has any bytes."""
    bodies = [FetchBody(topic, partition, 0, 100) for topic, partition in places]
    (whole, *parts) = await multi_fetch(session, bodies, lambda: None)
    answers = b"".join(map(bytes, parts))
    assert HEAD.unpack(whole) == (HEAD.size - 4 + len(answers), NONE)
    told = list(HEAD.iter_unpack(answers))
    assert {size for size, _ in told} == {HEAD.size - 4}
    return [error for _, error in told]


PLACES = [("t", index) for index in range(MANY)] + [("t", 7), ("nobody's", 0)]


def test_one_refresh_answers_all_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with run_session(tmp_path) as (world, session):
            seen = count_refreshes(world, monkeypatch)
            assert await ask(session, *PLACES) == [NONE, *[WRONG_PARTITION] * MANY, NONE]
            assert len(seen) == 1

    asyncio.run(run())


def test_nothing_is_refreshed_for_what_this_broker_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with run_session(tmp_path) as (world, session):
            seen = count_refreshes(world, monkeypatch)
            assert await ask(session, ("t", 0), ("t", MANY), ("t", -1)) == [NONE, WRONG_PARTITION, WRONG_PARTITION]
            assert not seen

    asyncio.run(run())


def test_a_refresh_that_fails_is_the_error_of_what_this_broker_does_not_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with run_session(tmp_path) as (world, session):
            seen = count_refreshes(world, monkeypatch, StoreError("the disk has gone"))
            assert await ask(session, *PLACES) == [NONE, *[UNKNOWN] * (MANY + 1)]
            assert len(seen) == 1
            answer = await fetch(session, [FetchBody("t", 3, 0, 100)], lambda: None)
            assert b"".join(map(bytes, answer)) == HEAD.pack(HEAD.size - 4, UNKNOWN)
            assert len(seen) == 2

    asyncio.run(run())
