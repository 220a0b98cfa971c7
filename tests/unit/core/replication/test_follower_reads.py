"""Consumers at a follower: up to the watermark that it knows, and what they are told above it."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast._native import batch_headers
from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.core.replication.follower_reads import FollowerPartition, find_follower
from korvet_fast.errors import Errors, KorvetError
from replicated_scene import ReplicatedScene

MIB = 1 << 20
RACK_AWARE = "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"


def find(scene: ReplicatedScene, log: str, identity: int) -> FollowerPartition:
    """A broker's copy, as a consumer finds it."""
    replicas = scene.brokers[identity].replicas
    found = find_follower(replicas, log, replicas.logs[log].topic, asyncio.Event())
    assert found is not None
    return found


async def read(copy: FollowerPartition, offset: int) -> list[int]:
    """The first offsets of the batches that a consumer gets."""
    page = await copy.read(offset, MIB)
    return [batch.base_offset for records in page.data for batch in batch_headers(memoryview(records), True)]


async def test_a_follower_gives_what_is_committed_and_no_more(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, RACK_AWARE) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        copy = find(scene, log, 2)
        await scene.append(log, 1, 2)
        await scene.append(log, 1, 3)
        await scene.until(lambda: copy.high_watermark.offset == 5)
        assert await read(copy, 0) == [0, 2]
        assert await read(copy, 2) == [2]
        assert await read(copy, 5) == []
        assert find(scene, log, 2) is copy
        assert find_follower(scene.brokers[1].replicas, log, copy._replica.topic, asyncio.Event()) is None


async def test_offsets_above_the_watermark_are_not_available_and_others_out_of_range(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, "replica.lag.timeout=60000") as scene:
        log = await scene.create(min_insync_replicas=3)
        await scene.acquire(log, 1)
        await scene.append(log, 1, 2)
        copy = find(scene, log, 2)
        await scene.until(lambda: copy.high_watermark.offset == 2)
        scene.mute = {(3, log)}
        waiting = scene.append(log, 1, 2)
        await scene.until(lambda: copy.end == 4)
        copy.check_offset(3)  # a fetch waits there
        with pytest.raises(KorvetError) as refused:
            await copy.read(3, MIB)
        assert refused.value.error == Errors.OFFSET_NOT_AVAILABLE
        with pytest.raises(KorvetError) as refused:
            copy.check_offset(5)
        assert refused.value.error == Errors.OFFSET_OUT_OF_RANGE
        scene.mute.clear()
        await waiting
        scene.mute = {(2, log)}
        copy._replica.state.update_high_watermark(6)  # the leader goes on, and this copy is behind
        with pytest.raises(KorvetError) as refused:
            copy.check_offset(5)
        assert refused.value.error == Errors.OFFSET_NOT_AVAILABLE


async def test_the_epoch_is_that_of_the_leader_that_is_followed(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        epoch = await scene.acquire(log, 1)
        copy = find(scene, log, 2)
        await scene.until(lambda: copy._replica.state.epoch == epoch)
        copy.check_epoch(-1)
        copy.check_epoch(epoch)
        for given, error in ((epoch - 1, Errors.FENCED_LEADER_EPOCH), (epoch + 1, Errors.UNKNOWN_LEADER_EPOCH)):
            if given != -1:
                with pytest.raises(KorvetError) as refused:
                    copy.check_epoch(given)
                assert refused.value.error == error


async def test_a_fetch_waits_at_a_follower_until_there_are_enough_bytes(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, RACK_AWARE) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        copy = find(scene, log, 3)
        await scene.append(log, 1)
        await scene.until(lambda: copy.high_watermark.offset == 1)
        size = sum(map(len, (await copy.read(0, MIB)).data))
        with DelayedFetch([(copy, 1)], 2 * size) as delayed:
            waiting = asyncio.create_task(delayed.wait(300))
            await scene.append(log, 1)
            await scene.until(lambda: copy.high_watermark.offset == 2)
            assert not waiting.done()
            await scene.append(log, 1)
            assert await waiting
        assert await read(copy, 1) == [1, 2]


async def test_what_an_unclean_leader_never_had_is_gone_at_followers_too(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, RACK_AWARE) as scene:
        log = await scene.create(min_insync_replicas=1)
        await scene.acquire(log, 1)
        await scene.append(log, 1, 2)
        copy = find(scene, log, 2)
        await scene.until(lambda: copy.high_watermark.offset == 2)
        scene.mute = {(3, log)}
        await scene.isr(log, 1, 1, 2)
        await scene.append(log, 1, 3)
        await scene.until(lambda: copy.high_watermark.offset == 5)
        await scene.stop(1)
        scene.mute.clear()
        await scene.appoint_metadata(2)
        assert await scene.appoint(log, 3, unclean=True) == ""
        await scene.until(lambda: copy.end == 2)
        assert (copy.high_watermark.offset, await read(copy, 0)) == (2, [0])
        await scene.append(log, 3)
        await scene.until(lambda: copy.high_watermark.offset == 3)
        assert await read(copy, 2) == [2]


async def test_a_copy_that_is_removed_lets_its_consumers_go(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        copy = find(scene, log, 2)
        with DelayedFetch([(copy, 0)], 1) as delayed:
            waiting = asyncio.create_task(delayed.wait(300))
            await asyncio.sleep(0)
            document = await scene.stores[1].load("topics/orders")
            assert await scene.stores[1].save("topics/orders", None, document)
            assert await waiting
        await scene.until(lambda: log not in scene.brokers[2].replicas.logs)
