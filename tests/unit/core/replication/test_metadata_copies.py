"""Batches that are no changes of keys: a follower's metadata log takes none of them, whatever its leader sends."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from batches import make_batch
from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.replication import copying
from korvet_fast.core.replication.metadata_log import MetadataLog
from korvet_fast.core.replication.peers import METADATA_LOG, FetchedLog, FetchPosition
from korvet_fast.errors import StoreError
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.key_changes import pack_changes
from replicated_scene import ReplicatedScene
from twin.strategies import sealed

KEY = b"k/1"
REFUSED = f"{METADATA_LOG}: a batch is no change of keys"


def make_change() -> bytes:
    """A batch as the leader writes it."""
    return bytes(pack_changes([(KEY.decode(), b"x")], 0))


def write_under(batch: bytes, epoch: int, offset: int) -> bytes:
    """The batch as the leader of `epoch` has it at `offset`; the checksum does not cover these."""
    return offset.to_bytes(8, "big") + batch[8:12] + epoch.to_bytes(4, "big") + batch[16:]


def no_text() -> bytes:
    return sealed(make_change().replace(KEY, b"\xff\xff\xff"))


def no_keys() -> bytes:
    return bytes(make_batch([b"a record of a topic"]))


def no_record() -> bytes:
    whole = make_change()
    return sealed(whole[:61] + b"\x7f" + whole[62:])  # the length of the first record


async def open_copy(store: EmbeddedStore) -> MetadataLog:
    background = BackgroundTasks(RateLimitedLog(asyncio.get_running_loop().time))
    log = MetadataLog(1, store, lambda key, value: None, background.start)
    await log.open()
    log.replica.state.follow_leader(2, 0)
    return log


@pytest.mark.parametrize("make", [no_text, no_keys, no_record])
@pytest.mark.parametrize("behind", [False, True])
async def test_nothing_of_it_is_stored(tmp_path: Path, make: Callable[[], bytes], behind: bool) -> None:
    """`behind`: a good batch comes first."""
    store = EmbeddedStore(tmp_path)
    await store.open()
    log, good = await open_copy(store), write_under(make_change(), 0, 0)
    page = good + write_under(make(), 0, 1) if behind else write_under(make(), 0, 0)
    with pytest.raises(StoreError, match=REFUSED):
        await copying.copy(log.replica, 0, 0, page)
    assert (log.replica.end, log.replica.state.end, (await store.bounds(METADATA_LOG)).end) == (0, 0, 0)
    assert log.replica.epochs.entries == []
    assert await copying.copy(log.replica, 0, 0, good)
    await store.close()
    store = EmbeddedStore(tmp_path)
    await store.open()
    assert (await open_copy(store)).replica.end == 1
    await store.close()


async def test_it_is_told_once_and_the_log_is_copied_when_the_leader_sends_good_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        leading, lies = scene.brokers[1].leading, 2
        fetch = leading.fetch

        async def lie(follower: int, asked: Sequence[FetchPosition], wait_ms: int) -> list[FetchedLog]:
            nonlocal lies
            (log, epoch, offset), *others = asked
            if follower != 3 or log != METADATA_LOG or lies == 0:
                return await fetch(follower, asked, wait_ms)
            assert others == []
            lies -= 1
            records = [write_under(no_text(), epoch, offset)]
            return [FetchedLog(METADATA_LOG, high_watermark=offset + 1, start=0, records=records)]

        monkeypatch.setattr(leading, "fetch", lie)
        await scene.until(lambda: not lies)
        assert await scene.stores[2].save("k/2", b"y", None)
        await scene.copy_metadata()
        await scene.until(lambda: not scene.brokers[3].metadata_replica.failure)
        await scene.stop(3)
        await scene.start(3)
        assert await scene.stores[3].load("k/2") == b"y"
    told = [record.getMessage() for record in caplog.records]
    assert sum(line.startswith(f"{METADATA_LOG} is not copied, and tried again: {REFUSED}") for line in told) == 1
    assert told.count(f"{METADATA_LOG} is copied again") == 1
