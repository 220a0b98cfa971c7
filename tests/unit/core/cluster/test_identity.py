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


def test_one_broker_goes_on_above_the_epochs_of_several(tmp_path: Path) -> None:
    """And several go on above its own; each starts from what was told, once."""

    async def run() -> None:
        store = EmbeddedStore(tmp_path)
        await store.open()
        alone = ClusterIdentity(store)
        await alone.begin()
        await alone.end()
        await store.save("leads/1", b'{"ab":{"0":3,"1":41},"cd":{}}', None)
        await store.save("leads/2", b'{"ab":{"2":7}}', None)
        for _ in range(2):
            alone = ClusterIdentity(store)
            await alone.begin()
            assert alone.epoch == 1041
            await alone.end()
        assert await store.scan("leads/") == {}
        server = Server()
        document = await store.load("broker")
        assert document is not None
        server.keys["broker"] = document
        one = ClusterIdentity(SharedStore(server))
        await one.begin()
        assert (one.epoch, one.cluster_id) == (1042, alone.cluster_id)
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
