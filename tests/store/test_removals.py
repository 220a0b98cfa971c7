"""Removing records of one log while the flushes of another take long."""

import asyncio

import pytest

from korvet_fast.store.embedded.removals import Removals
from store.engines import EmbeddedEngine
from store.record_batches import fill, read_all

SLOW, OTHER, THIRD = "slow:0", "other:0", "third:0"


async def test_a_log_that_waits_for_its_flushes_keeps_no_other_waiting(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    for log in (SLOW, OTHER, THIRD):
        await fill(store, log, *[1] * 5, sync=True)
    async with store._commit.pause(store._logs[SLOW]):
        store._logs[SLOW].durable = 3  # the rest waits for a flush
        waiting = asyncio.create_task(store.delete_records(SLOW, 4))
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await store.delete_records(OTHER, 2)
            await store.apply_retention(OTHER, larger_than=1)
            await store.truncate(OTHER, 4)
            await store.drop(THIRD)
            await store.close_idle()
        assert await read_all(store, OTHER) == [2, 3]
        assert not waiting.done()
    assert (await waiting).start == 4
    await store.close()


async def test_one_removal_at_a_time_in_a_log() -> None:
    removals = Removals()
    async with removals.lock(SLOW):
        assert removals.under_way(SLOW) and not removals.under_way(OTHER)
        second = asyncio.create_task(removals.lock(SLOW).acquire())
        await asyncio.sleep(0)
        assert not second.done()
    assert await second


async def test_stopping_waits_for_those_under_way_and_lets_none_begin() -> None:
    removals = Removals()
    logs = {SLOW: 0}
    under_way = removals.lock(SLOW)
    await under_way.acquire()
    stopped = removals.stop(logs.keys())
    entering = asyncio.create_task(stopped.__aenter__())
    await asyncio.sleep(0)
    assert not entering.done()
    logs[OTHER] = 0  # a log that is made meanwhile
    under_way.release()
    await entering
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(removals.lock(OTHER).acquire(), 0.01)
    await stopped.__aexit__(None, None, None)
    assert not removals.under_way(SLOW) and not removals.under_way(OTHER)
