"""What is logged where the broker that is copied says nothing."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from korvet_fast.core.clock import Clock
from korvet_fast.core.replication.peers import FetchedLog, FetchPosition, Peers
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replica_fetcher import ReplicaFetcher
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore


class FailingPeers:
    """A broker that fails with each of these in turn."""

    def __init__(self, *details: str) -> None:
        self.details = list(details)
        self.over = asyncio.Event()

    async def fetch(
        self, broker: int, positions: Sequence[FetchPosition], wait_ms: int, *, catching_up: bool = False
    ) -> list[FetchedLog]:
        if not self.details:
            self.over.set()
            await asyncio.Event().wait()
        raise StoreError(self.details.pop(0))


class HurriedClock(Clock):
    """Sleeping takes no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def test_a_broker_is_named_once_and_a_reason_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    replica = Replica("orders:0", "topic", store)
    await replica.open()
    replica.state.follow_leader(1, 0)
    peers = FailingPeers("broker 1: cannot connect", "broker 1: cannot connect", "its disk does not answer")
    task = asyncio.create_task(ReplicaFetcher(cast(Peers, peers), HurriedClock(), lambda: (1, [replica]), {}).run())
    async with asyncio.timeout(100):
        await peers.over.wait()
    task.cancel()
    await asyncio.wait([task])
    told = [record.getMessage() for record in caplog.records]
    assert told == ["broker 1: cannot connect", "broker 1: its disk does not answer"]
    await store.close()


async def test_a_broker_that_several_fetchers_ask_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    silent: dict[int, str] = {}
    tasks = []
    for number in range(3):
        replica = Replica(f"orders:{number}", "topic", store)
        await replica.open()
        replica.state.follow_leader(1, 0)
        peers = FailingPeers(*["broker 1: cannot connect"] * 3)
        fetcher = ReplicaFetcher(cast(Peers, peers), HurriedClock(), lambda found=replica: (1, [found]), silent)
        fetcher.reached = number > 0  # the first failure of these is that of an open connection
        peers.details[0] = "broker 1: closed the connection" if fetcher.reached else peers.details[0]
        tasks.append(asyncio.create_task(fetcher.run()))
        async with asyncio.timeout(100):
            await peers.over.wait()
        assert silent == {1: "broker 1: cannot connect"}
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert [record.getMessage() for record in caplog.records] == ["broker 1: cannot connect"]
    await store.close()
