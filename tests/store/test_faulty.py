"""A writer over a store that fails at random: nothing acknowledged is missing, nothing is there twice."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import ABSENT, Stale
from store.engines import SEED
from store.entries import make_entry, read_all
from store.faulty import Faulty, Plan


@pytest.mark.parametrize("seed", range(SEED, SEED + 10))
async def test_appends(tmp_path: Path, seed: int) -> None:
    inner = EmbeddedStore(tmp_path)
    plan = Plan(seed, before=0.1, after=0.1)
    store = Faulty(inner, plan)
    await inner.open()
    acked: list[int] = []

    async def write() -> None:
        for _ in range(60):
            end = (await inner.bounds("log:0")).end  # as a caller does whose append had an unknown outcome
            try:
                await asyncio.shield(store.append("log:0", [make_entry(end)], end, sync=True).durable)
                acked.append(end)
            except (StoreError, Stale):
                continue

    await asyncio.gather(*(write() for _ in range(3)))
    assert plan.failures > 0, f"seed {seed}"
    await store.close()
    await inner.open()
    present = await read_all(inner, "log:0")
    assert present == list(range(len(present))), f"seed {seed}"
    assert len(set(acked)) == len(acked), f"seed {seed}"
    assert set(acked) <= set(present), f"seed {seed}"
    await inner.close()


@pytest.mark.parametrize("seed", range(SEED, SEED + 10))
async def test_keys(tmp_path: Path, seed: int) -> None:
    """A counter raised by compare-and-set: never less than what was confirmed, never more than what was tried."""
    inner = EmbeddedStore(tmp_path)
    store = Faulty(inner, Plan(seed, before=0.1, after=0.1))
    await inner.open()
    confirmed = tried = 0

    async def count() -> None:
        nonlocal confirmed, tried
        for _ in range(30):
            known = await inner.load("n")
            tried += 1
            try:
                confirmed += await store.save("n", b"%d" % (int(known or 0) + 1), known if known else ABSENT)
            except StoreError:
                continue

    await asyncio.gather(count(), count())
    await store.close()
    await inner.open()
    assert confirmed <= int(await inner.load("n") or 0) <= tried, f"seed {seed}"
    await inner.close()
