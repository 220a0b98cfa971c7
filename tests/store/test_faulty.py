"""Writers over a store that fails at random: nothing acknowledged is missing, nothing is there twice."""

import asyncio

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.types import ABSENT, NotLeader, OffsetConflict
from store.engines import SEED, Engine
from store.faulty import Plan

LOG = "log:0"


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
async def test_appends(engine: Engine, seed: int) -> None:
    plan = Plan(seed, before=0.1, after=0.1)
    acked: list[int] = []
    async with engine.scene(plan=plan) as scene:

        async def acquire() -> None:
            while True:
                try:
                    await scene.acquire(LOG)
                    return
                except StoreError:
                    continue

        async def write() -> None:
            for _ in range(40):
                try:
                    end = (await scene.bounds(LOG)).end  # as a caller does whose append had an unknown outcome
                    await asyncio.shield(scene.append(LOG, end, 1, sync=True).durable)
                    acked.append(end)
                except NotLeader:
                    await acquire()
                except (StoreError, OffsetConflict):
                    continue

        await acquire()
        await asyncio.gather(*(write() for _ in range(3)))
        assert plan.failures > 0, f"seed {seed}"
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        present = await scene.read_all(LOG)
        assert present == list(range(len(present))), f"seed {seed}"
        assert len(set(acked)) == len(acked), f"seed {seed}"
        assert set(acked) <= set(present), f"seed {seed}"


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
async def test_keys(engine: Engine, seed: int) -> None:
    """A counter raised by compare-and-set: never less than what was confirmed, never more than what was tried."""
    confirmed = tried = 0
    async with engine.scene(plan=Plan(seed, before=0.1, after=0.1)) as scene:
        store = scene.store

        async def count() -> None:
            nonlocal confirmed, tried
            for _ in range(30):
                try:
                    known = await store.load("n")
                    tried += 1
                    confirmed += await store.save("n", b"%d" % (int(known or 0) + 1), known if known else ABSENT)
                except StoreError:
                    continue

        await asyncio.gather(count(), count())
    async with engine.scene() as scene:
        value = None
        while value is None:
            try:
                value = int(await scene.store.load("n") or 0)
            except StoreError:
                continue
        assert confirmed <= value <= tried, f"seed {seed}"
