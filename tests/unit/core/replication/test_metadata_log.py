"""The metadata log: one set of keys for all brokers, whoever leads it."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core.replication import metadata_log
from korvet_fast.errors import StoreError
from korvet_fast.store.types import CompareAndSet
from replicated_scene import ReplicatedScene


async def test_keys_are_the_same_for_all(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        store = scene.stores[3]
        assert await store.save("a/x", b"1", None, CompareAndSet("a/y", b"2", None))
        assert not await store.save("a/x", b"3", None)
        version = await scene.stores[2].version("a/")
        assert await scene.stores[2].scan("a/") == {"a/x": b"1", "a/y": b"2"}
        assert await scene.stores[1].save("a/x", None, b"1")
        assert await store.load("a/x") is None
        assert await store.version("a/") != version


async def test_one_of_many_that_set_a_key_gets_it(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        works = [store.save("k/1", b"%d" % own, None) for own, store in scene.stores.items() for _ in range(5)]
        assert sum(await asyncio.gather(*works)) == 1


async def test_another_broker_is_named_and_knows_all(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        for number in range(20):
            assert await scene.stores[2].save(f"k/{number}", b"x", None)
        await scene.stop(1)
        await scene.appoint_metadata(3)
        assert len(await scene.stores[2].scan("k/")) == 20
        assert await scene.stores[2].save("k/0", b"y", b"x")
        await scene.start(1)
        assert scene.brokers[1].election.leader == 3
        assert await scene.stores[1].load("k/0") == b"y"


async def test_without_most_brokers_nobody_is_named(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.stop(1)
        await scene.stop(2)
        why = await scene.brokers[3].election.become_leader()
        assert why == "only 1 of 3 brokers answer, and more than half are needed"


async def test_a_leader_without_followers_promises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "_PATIENCE", 0.2)
    async with ReplicatedScene(tmp_path) as scene:
        scene.isolate(1)
        with pytest.raises(StoreError, match="may be made or not"):
            await scene.stores[1].save("k/lost", b"1", None)
        chosen = max((2, 3), key=lambda identity: scene.brokers[identity].election.position)
        await scene.appoint_metadata(chosen)
        assert await scene.stores[3].save("k/kept", b"1", None)
        scene.cut.clear()
        await scene.until(lambda: scene.brokers[1].election.leader == chosen)
        assert await scene.stores[1].scan("k/") == {"k/kept": b"1"}


async def test_what_is_out_of_date_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "_GARBAGE", 4096)
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[1].save("k/other", b"stays", None)
        await scene.stop(3)
        before = None
        for number in range(200):
            value = b"%0100d" % number
            assert await scene.stores[2].save("k/1", value, before)
            before = value
        log = scene.brokers[1]._log.replica
        await scene.until(lambda: log.start > 0)
        await scene.start(3)  # it begins where the log does
        await scene.until(lambda: scene.brokers[3]._log.replica.state.end == log.end)
        await scene.stop(1)
        await scene.appoint_metadata(3)
        assert await scene.stores[2].scan("k/") == {"k/1": before, "k/other": b"stays"}
