"""Two workers and one log: it has one owner, who lets it go when asked, and dies of nothing but its death."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.embedded.recovery import RecoveredLog, recover_log
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import WHOLE, NotLeader, OffsetConflict
from korvet_fast.store.workers import log_files, owners
from korvet_fast.store.workers.store import WorkerStore
from store.record_batches import make_record_batch, read_all
from store.scene import Scene
from store.worker_process import WorkerProcess

LOG = "orders:0"


@asynccontextmanager
async def opened(directory: Path, number: int) -> AsyncIterator[Scene]:
    """The store of a worker in this process."""
    store = WorkerStore(directory, number, directory / "locks")
    await store.open()
    try:
        yield Scene(store, WHOLE, 0)
    finally:
        await store.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[WorkerProcess]:
    """The worker 2, in another process."""
    with WorkerProcess(tmp_path, 2) as process:
        yield process


async def test_not_acquired(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as scene:
        with pytest.raises(NotLeader):
            scene.append(LOG, 0, 1)
        assert not await scene.store.shared.is_leader(LOG)


async def test_a_log_goes_from_one_to_the_other_and_back(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene:
        granted = await scene.acquire(LOG, epoch=4)
        assert granted.epoch == 4
        await scene.fill(LOG, 3, 2)
        for turn in range(5):
            end = 5 + turn * 2
            assert await other.do("acquire", LOG) == [5 + 2 * turn, end]
            assert not await scene.store.shared.is_leader(LOG)
            for _ in range(2):
                with pytest.raises(OffsetConflict) as refused:
                    scene.append(LOG, end, 1)
                assert refused.value.fenced
                assert refused.value.given_up
            assert (await scene.read(LOG, 0, 100)).data == []
            assert await other.do("append", LOG, end, 1, True)
            granted = await scene.acquire(LOG)
            assert (granted.epoch, granted.bounds.end, granted.bounds.durable) == (6 + 2 * turn, end + 1, end + 1)
            assert "OffsetConflict" in (await other.do("append", LOG, end + 1, 1, False))["error"]
            assert not await other.do("owns", LOG)
            assert (await scene.fill(LOG, 1)).end == end + 2
            assert await scene.read_all(LOG) == list(range(end + 2))


async def test_a_log_that_cannot_be_opened_again_was_given_up_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise StoreError("the disk fails")

    async with opened(tmp_path, 1) as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 3)
        monkeypatch.setattr(log_files.LogFiles, "open", fail)
        with pytest.raises(StoreError, match="the disk fails"):
            await scene.acquire(LOG)
        with pytest.raises(OffsetConflict) as refused:
            scene.append(LOG, 3, 1)
        assert refused.value.fenced
        assert not refused.value.given_up
        monkeypatch.undo()
        await scene.acquire(LOG)
        assert (await scene.fill(LOG, 1)).end == 4


async def test_appends_under_way_are_durable_before_the_log_goes(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene:
        await scene.acquire(LOG)
        going = asyncio.create_task(other.do("acquire", LOG))
        waiting, end = [], 0
        while True:
            try:
                waiting.append(scene.append(LOG, end, 1, sync=True).durable)
            except OffsetConflict as conflict:
                assert conflict.fenced
                break
            end += 1
            await asyncio.sleep(0)
        await asyncio.wait(waiting)
        assert [future.exception() for future in waiting] == [None] * end
        assert await going == [1, end]


@pytest.mark.parametrize("sync", [True, False])
async def test_a_killed_owner_is_followed_without_asking(tmp_path: Path, other: WorkerProcess, sync: bool) -> None:
    """All that was stored is there, flushed or not: the page cache outlives a process."""
    async with opened(tmp_path, 1) as scene:
        await other.do("acquire", LOG)
        for at in range(0, 40, 2):
            assert await other.do("append", LOG, at, 2, sync) is True
        other.kill()
        granted = await scene.acquire(LOG)
        assert (granted.epoch, granted.bounds.end, granted.bounds.durable) == (1, 40, 40)
        assert await scene.read_all(LOG) == list(range(40))
        assert (await scene.fill(LOG, 1)).end == 41


async def test_a_log_that_cannot_be_opened_is_named_with_what_to_do(tmp_path: Path) -> None:
    segment = tmp_path / "orders-0" / f"{0:020}.log"
    segment.mkdir(parents=True)
    words = f"{segment} cannot be opened: Is a directory; a file belongs there: move the directory away, and copy"
    async with opened(tmp_path, 1) as scene:
        for ask in (scene.acquire(LOG), scene.store.bounds(LOG)):
            with pytest.raises(StoreError) as failure:
                await ask
            assert failure.value.detail.startswith(words)


async def test_the_torn_end_of_a_killed_owner_is_cut_off(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene:
        await other.do("acquire", LOG)
        await other.do("append", LOG, 0, 2, True)
        other.kill()
        torn = bytes(make_record_batch(2, 2).data)[:-7]
        with (tmp_path / "orders-0" / f"{0:020}.log").open("ab") as file:
            file.write(torn)
        assert (await scene.acquire(LOG)).bounds.end == 2
        assert (await scene.fill(LOG, 3)).end == 5
        assert await scene.read_all(LOG) == list(range(5))


@pytest.mark.parametrize("killed", [False, True])
async def test_an_owner_that_stands_still_keeps_its_log(
    tmp_path: Path, other: WorkerProcess, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """Whatever it may still write, nobody else writes there, until it is dead, or awake and asked."""
    async with opened(tmp_path, 1) as scene, opened(tmp_path, 3):
        while await other.do("serves"):  # whoever has the registry must not stand still
            await other.do("close")
            other.kill()
            await asyncio.to_thread(other.start)
        await other.do("acquire", LOG)
        await other.do("append", LOG, 0, 2, True)
        other.pause()
        with (
            monkeypatch.context() as hasty,
            pytest.raises(StoreError, match="belongs to worker 2, which does not answer"),
        ):
            hasty.setattr(owners, "PATIENCE", 0.3)
            await scene.acquire(LOG)
        if killed:
            other.kill()
        else:
            other.resume()
        assert (await scene.acquire(LOG)).bounds.end == 2
        if not killed:
            assert "OffsetConflict" in (await other.do("append", LOG, 2, 1, True))["error"]
        assert (await scene.fill(LOG, 1)).end == 3


async def test_a_restarted_worker_is_another_owner(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene:
        await other.do("acquire", LOG)
        await other.do("append", LOG, 0, 1, True)
        other.kill()
        await asyncio.to_thread(other.start)
        assert not await other.do("owns", LOG)
        assert (await scene.acquire(LOG)).epoch == 1
        assert await other.do("acquire", LOG) == [2, 1]


async def test_a_process_is_known_to_have_ended_when_it_has(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene, opened(tmp_path, 3) as third:
        processes = scene.store.shared.processes
        name = await other.do("name")
        other.pause()
        assert not processes.has_ended(name), "it only stands still"
        other.kill()
        assert processes.has_ended(name)
        await asyncio.to_thread(other.start)
        assert processes.has_ended(name)
        assert not any(map(processes.has_ended, (await other.do("name"), third.store.processes.own, processes.own)))
        assert not any(map(processes.has_ended, ("", "2", "2-", "0123456789abcdef"))), "no names of workers"


async def test_two_that_want_the_same_logs_both_get_them_in_turn(tmp_path: Path, other: WorkerProcess) -> None:
    """Epochs rise without a repetition, however they meet."""
    logs = [f"orders:{number}" for number in range(4)]
    async with opened(tmp_path, 1) as scene:
        epochs: list[tuple[str, int]] = []

        async def want(log: str) -> None:
            for _ in range(10):
                epochs.append((log, (await scene.acquire(log)).epoch))
                await asyncio.sleep(0.001)

        async def want_there() -> None:
            for _ in range(10):
                for log in logs:
                    epoch, _ = await other.do("acquire", log)
                    epochs.append((log, epoch))

        await asyncio.gather(want_there(), *map(want, logs))
        assert len(epochs) == len(set(epochs)) == 80
        assert {epoch for _, epoch in epochs} == set(range(20))


async def test_who_opens_a_log_and_is_stopped_keeps_it_until_nothing_is_cut_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that still looks for the log's end would cut off what the next owner appends."""
    entered, goes_on, cut = threading.Event(), threading.Event(), threading.Event()

    def recover_slowly(*given: Any) -> RecoveredLog:
        entered.set()
        goes_on.wait(60)
        cut.set()
        return recover_log(*given)

    async with opened(tmp_path, 1) as first, opened(tmp_path, 2) as second:
        await first.acquire(LOG, epoch=0)
        await first.fill(LOG, 1)
        with monkeypatch.context() as slow:
            slow.setattr(log_files, "recover_log", recover_slowly)
            stopped = asyncio.create_task(second.acquire(LOG, epoch=0))
            await asyncio.to_thread(entered.wait, 60)
        stopped.cancel()
        wanting = asyncio.create_task(first.acquire(LOG, epoch=0))
        got: list[bool] = []
        wanting.add_done_callback(lambda _: got.append(cut.is_set()))
        await asyncio.wait([wanting], timeout=0.3)
        goes_on.set()
        await wanting
        await asyncio.wait([stopped])
        assert stopped.cancelled()
        assert got == [True]


async def test_a_dropped_log_is_gone_for_its_owner_too(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene:
        await other.do("acquire", LOG)
        await other.do("append", LOG, 0, 2, False)
        await scene.drop(LOG)
        assert "OffsetConflict" in (await other.do("append", LOG, 2, 1, False))["error"]
        assert await other.do("acquire", LOG) == [0, 0]
        assert await other.do("append", LOG, 0, 1, True) is True
        granted = await scene.acquire(LOG)
        assert (granted.bounds.start, granted.bounds.end) == (0, 1)
        assert (await scene.fill(LOG, 1)).end == 2  # into the new files, not into those that were dropped


async def test_a_log_that_another_worker_drops_is_forgotten(tmp_path: Path) -> None:
    """A program that makes and deletes topics all day must not fill the memory of all workers."""
    async with opened(tmp_path, 1) as scene, opened(tmp_path, 2) as two:
        for log in ("orders:0", "orders:1", "kept:0"):
            await scene.acquire(log)
            await scene.fill(log, 1)
            await two.acquire(log)
        await scene.acquire("orders:1")
        await two.drop("orders:0")
        await scene.drop("orders:1")
        for each in (scene, two):
            await each.store.close_idle(lambda log: log == "kept:0")
            assert list(each.store._logs) == ["kept:0"]
        assert await two.read_all("kept:0") == [0]
        await two.acquire("orders:0")
        await two.fill("orders:0", 1)
        assert (await scene.acquire("orders:0")).bounds.end == 1


async def test_only_the_owner_removes_records(tmp_path: Path, other: WorkerProcess) -> None:
    async with opened(tmp_path, 1) as scene:
        await other.do("acquire", LOG)
        await other.do("append", LOG, 0, 2, True)
        for removal in (
            scene.delete_records(LOG, 1),
            scene.apply_retention(LOG, larger_than=0),
            scene.truncate(LOG, 0),
        ):
            with pytest.raises(KorvetError) as refused:
                await removal
            assert refused.value.error == "NOT_LEADER_OR_FOLLOWER"
        assert (await scene.bounds(LOG)).end == 2
        assert await read_all(scene.store, LOG) == [0, 1]  # looking is free


async def test_an_index_is_written_while_a_log_grows(tmp_path: Path, other: WorkerProcess) -> None:
    """So the next owner has little to read, and what the index vouches for is flushed."""
    async with opened(tmp_path, 1) as scene:
        await scene.acquire(LOG)
        end = 0
        for _ in range(5):
            scene.append(LOG, end, 1, size=9 << 20)
            end += 1
        await scene.store._log_files.wait()
        assert (tmp_path / "orders-0" / f"{0:020}.index").exists()
        scene.append(LOG, end, 1)
        assert (await other.do("acquire", LOG))[1] == end + 1


async def test_after_workers_that_ended_well_one_store_finds_nothing_unclean(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, 1) as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 3)
    caplog.set_level("INFO")
    store = EmbeddedStore(tmp_path)
    await store.open()
    assert await read_all(store, LOG) == [0, 1, 2]
    await store.close()
    assert "was not closed cleanly" not in caplog.text


async def test_records_without_the_registry_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(tmp_path, 1) as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 3)
    assert "missing or empty" not in caplog.text
    shutil.rmtree(tmp_path / "@registry")
    async with opened(tmp_path, 1) as scene:
        await scene.acquire(LOG)
        assert await scene.read_all(LOG) == [0, 1, 2]
    assert "is missing or empty, and logs hold records (1, the first orders:0): stop the broker" in caplog.text
