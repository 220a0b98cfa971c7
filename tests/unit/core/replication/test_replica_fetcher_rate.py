"""A follower that catches up copies no faster than `follower.replication.throttled.rate`; one in sync is not slowed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from korvet_fast.core.clock import Clock
from korvet_fast.core.replication.peers import FetchedLog, FetchPosition, Peers
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replica_fetcher import ReplicaFetcher
from korvet_fast.store.embedded.store import EmbeddedStore
from store.record_batches import make_record_batch

BATCHES = 4


class CountedClock(Clock):
    """Its time moves by what is slept only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class OneBatchPeers:
    """A leader that gives one batch of a record in each answer. `apart`: as it was told `catching_up`."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.apart: set[bool] = set()
        self.over = asyncio.Event()

    async def fetch(
        self, broker: int, positions: Sequence[FetchPosition], wait_ms: int, *, catching_up: bool = False
    ) -> list[FetchedLog]:
        self.apart.add(catching_up)
        ((log, _, offset),) = positions
        if offset == BATCHES:
            self.over.set()
            await asyncio.Event().wait()
        data = make_record_batch(offset, 1).data
        data[12:16] = bytes(4)  # the leader's epoch
        self.sizes.append(len(data))
        return [FetchedLog(log, high_watermark=BATCHES, start=0, records=[data])]


@pytest.mark.parametrize("rate", [100, None])
async def test_each_page_is_paid_for(tmp_path: Path, rate: int | None) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    replica = Replica("orders:0", "topic", store)
    await replica.open()
    replica.state.follow_leader(1, 0)
    peers, clock = OneBatchPeers(), CountedClock()
    task = asyncio.create_task(ReplicaFetcher(cast(Peers, peers), clock, lambda: (1, [replica]), {}, rate=rate).run())
    async with asyncio.timeout(100):
        await peers.over.wait()
    task.cancel()
    await asyncio.wait([task])
    assert replica.end == BATCHES
    assert peers.apart == {rate is not None}
    assert clock.slept == ([] if rate is None else pytest.approx([size / rate for size in peers.sizes]))
    await store.close()
