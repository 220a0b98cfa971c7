"""Who the cluster is, and which epoch a store that is not shared is in."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core.cluster.identity import ClusterIdentity
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from shared_store import Server, SharedStore


def test_an_epoch_counts_the_starts_after_a_death(tmp_path: Path) -> None:
    async def run() -> None:
        store = EmbeddedStore(tmp_path)
        await store.open()
        epochs, names = [], set()
        for clean in (True, False, False, True, True):
            identity = ClusterIdentity(store)
            await identity.begin()
            epochs.append(identity.epoch)
            names.add(identity.cluster_id)
            if clean:
                await identity.end()
        assert epochs == [0, 0, 1, 2, 2]
        assert len(names) == 1
        await store.close()

    asyncio.run(run())


def test_a_store_that_is_not_shared_has_one_broker(tmp_path: Path) -> None:
    async def run() -> None:
        store = EmbeddedStore(tmp_path)
        await store.open()
        first, second = ClusterIdentity(store), ClusterIdentity(store)
        await first.begin()
        await second.begin()
        with pytest.raises(StoreError, match="another broker uses this store"):
            await first.end()
        await store.close()

    asyncio.run(run())


def test_brokers_of_a_shared_store_agree_and_need_no_clean_stop() -> None:
    async def run() -> None:
        server = Server()
        identities = [ClusterIdentity(SharedStore(server)) for _ in range(3)]
        await asyncio.gather(*[identity.begin() for identity in identities])
        assert len({identity.cluster_id for identity in identities}) == 1
        assert [identity.epoch for identity in identities] == [0, 0, 0]
        for identity in identities:
            await identity.end()

    asyncio.run(run())
