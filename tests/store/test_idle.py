"""Logs that nobody uses: they are closed, and whoever uses one finds what was there."""

import asyncio
import os
import signal
from pathlib import Path
from random import Random

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from store.breakable import Flushes
from store.engines import SEED, EmbeddedEngine, Engine
from store.record_batches import LIMIT, fill, make_record_batch, offsets, read_all, up_to
from store.test_crash import start

LOG = "orders:0"


async def close_all(store: EmbeddedStore) -> None:
    """The first call finds out which logs nobody uses, the second one closes them, once their indexes are written."""
    for log in list(store._logs.values()):
        await store._commit.wait_until_idle(log)
    await store.close_idle()
    await store.close_idle()


def closed(store: EmbeddedStore) -> list[str]:
    """The names of the logs that are closed."""
    return sorted(name for name, log in store._logs.items() if log.is_closed)


async def test_every_engine_goes_on_after_it(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3)
        for _ in range(2):
            await scene.store.close_idle()
        assert (await scene.fill(LOG, 2)).end == 8
        assert await scene.read_all(LOG) == list(range(8))
        for _ in range(2):
            await scene.store.close_idle()
        assert (await scene.delete_records(LOG, 4)).start == 4
        engine.crash()
    async with engine.scene() as scene:
        assert (await scene.acquire(LOG)).bounds.start == 4


async def test_every_engine_keeps_the_records_of_logs_that_are_not_wanted(engine: Engine) -> None:
    """Who does not want a log may be mistaken, or want it again at once."""
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3)
        for _ in range(2):
            await scene.store.close_idle(lambda _: False)
        assert (await scene.acquire(LOG)).bounds.end == 6
        assert (await scene.fill(LOG, 2)).end == 8
        assert await scene.read_all(LOG) == list(range(8))


async def test_only_the_second_call_without_a_use_between_closes(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 3)
    await fill(store, "orders:1", 3)
    await store.close_idle()
    await fill(store, LOG, 1)
    await store.close_idle()
    assert closed(store) == ["orders:1"]
    assert await read_all(store, "orders:1") == [0, 1, 2]
    await close_all(store)
    assert closed(store) == [LOG, "orders:1"]
    await store.close()


async def test_a_closed_log_keeps_segments_indexes_and_bounds(embedded: EmbeddedEngine) -> None:
    """Full segments have their index beside them, the last one has its rows in memory; none of them is read again."""
    store = embedded.make(index_interval_bytes=100)
    await store.open()
    await fill(store, LOG, *[3] * 40, sync=True, size=50, segment_limits=up_to(2000))
    await store.delete_records(LOG, 20)
    before = await store.bounds(LOG)
    index = store._logs[LOG].segments[-1].index
    assert index is not None
    assert len(index)
    assert len(store._files)
    rows = index.pack()
    await close_all(store)
    assert closed(store) == [LOG]
    assert len(store._files) == 0
    assert await store.bounds(LOG) == before
    assert (await store.apply_retention(LOG, larger_than=1 << 30)) == before
    assert closed(store) == [LOG], "to look at its bounds opens no log"
    index = store._logs[LOG].segments[-1].index
    assert index is not None
    assert index.pack() == rows
    assert (await read_all(store, LOG, 20))[-1] == 119
    await store.close()
    assert "orders-0" in (embedded.directory / "checkpoint").read_text()


async def test_retention_and_drop_find_closed_logs(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[3] * 4, sync=True, time=100, segment_limits=up_to(1))
    await fill(store, "orders:1", 3)
    await close_all(store)
    assert (await store.apply_retention(LOG, older_than=106)).start == 6
    await close_all(store)
    assert (await store.apply_retention(LOG, older_than=1000)).start == 12
    await close_all(store)
    assert (await store.truncate(LOG, 12)).end == 12
    await close_all(store)
    await store.drop("orders:1")
    assert not (embedded.directory / "orders-1").exists()
    assert (await fill(store, "orders:1", 2)).end == 2
    assert (await fill(store, LOG, 2)).end == 14
    await store.close()


async def test_a_log_whose_flush_is_under_way_stays_open(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed when the flush has ended; one that fails is told to those who wait, as ever."""
    flushes = Flushes(monkeypatch)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1, sync=True)
    log = store._logs[LOG]
    flushes.broken = True
    durable = store.open_log(LOG).append([make_record_batch(1)], 1, sync=True).durable
    log.used = False
    assert not log.is_idle
    with pytest.raises(StoreError):
        await durable
    await close_all(store)
    with pytest.raises(StoreError, match="restarted"):
        store.open_log(LOG).append([make_record_batch(2)], 2, sync=True)
    with pytest.raises(StoreError, match="the flush failed"):
        await store.close()


async def test_what_was_not_flushed_is_flushed_when_the_store_closes(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes = Flushes(monkeypatch)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 3, sync=False)
    await close_all(store)
    assert closed(store) == [LOG]
    await store.close()
    assert [path.parent.name for path in flushes.files].count("orders-0") == 1


async def test_calls_at_any_time_change_nothing(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many logs, few open files; produces, reads, retention, drops and closing go on side by side."""
    random = Random(SEED)
    print(f"KORVET_TEST_SEED={SEED}")
    monkeypatch.setattr("korvet_fast.store.embedded.store.default_limit", lambda: 4)
    store = embedded.make(index_interval_bytes=200)
    await store.open()
    over = asyncio.Event()
    ends = dict.fromkeys((f"log:{number}" for number in range(100)), 0)

    async def write(names: list[str]) -> None:
        for _ in range(300):
            name = random.choice(names)
            end = ends[name]
            if random.random() < 0.03:
                await store.drop(name)
                ends[name] = 0
                continue
            batch, limits = make_record_batch(end, size=random.choice([20, 700])), up_to(2000)
            appending = store.open_log(name).append([batch], end, sync=random.random() < 0.5, segment_limits=limits)
            ends[name] = end + 1
            if random.random() < 0.3:
                await appending.durable

    async def read() -> None:
        while not over.is_set():
            name = random.choice(list(ends))
            start = (await store.bounds(name)).start
            found = offsets(await store.open_log(name).read(start, 10_000, LIMIT))
            assert found == list(range(start, start + len(found))) or (await store.bounds(name)).start != start
            await asyncio.sleep(0)

    async def retire() -> None:
        while not over.is_set():
            await store.apply_retention(random.choice(list(ends)), larger_than=5000)
            await asyncio.sleep(0.001)

    async def close() -> None:
        while not over.is_set():
            await store.close_idle()
            assert len(store._files) <= 4

    others = [asyncio.ensure_future(work()) for work in (read, read, retire, close)]
    names = list(ends)
    await asyncio.gather(*(write(names[number::10]) for number in range(10)))
    over.set()
    await asyncio.gather(*others)
    for again in range(2):
        for name, end in ends.items():
            bounds = await store.bounds(name)
            assert bounds.end == end
            assert await read_all(store, name, bounds.start) == list(range(bounds.start, end))
        await store.close()
        if not again:
            store = embedded.make()
            await store.open()


async def test_a_read_that_waits_for_the_disk_keeps_its_log_open(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.preadv

    def preadv(fd: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        if flags:
            raise BlockingIOError
        return real(fd, buffers, position)

    monkeypatch.setattr(os, "preadv", preadv)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 3, sync=True)
    await close_all(store)
    reading = asyncio.ensure_future(store.open_log(LOG).read(0, 1000, LIMIT))
    await asyncio.sleep(0)
    log = store._logs[LOG]
    assert log.reading == 1
    await close_all(store)
    assert not log.is_closed or log.reading == 0
    assert offsets(await reading) == [0, 1, 2]
    assert log.reading == 0
    await store.close()


async def test_kill_while_logs_are_being_closed(tmp_path: Path) -> None:
    """What was acknowledged is there after kill -9, in order, once."""
    acked: dict[str, int] = {}
    for _ in range(3):
        child = start(tmp_path, "idle")
        assert child.stdout is not None
        for number, line in enumerate(child.stdout):
            _, name, value = line.split()
            acked[name] = int(value)
            if number == 300:
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        assert number == 300, "the writer ended by itself"
        store = EmbeddedStore(tmp_path)
        await store.open()
        for name in ("log:0", "log:1", "log:2"):
            present = await read_all(store, name)
            assert present == list(range(len(present)))
            assert len(present) > acked.get(name, -1)
        store._release()
