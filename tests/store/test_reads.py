"""Reads that have to wait for the disk, and logs that change meanwhile."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from store.engines import EmbeddedEngine
from store.record_batches import LIMIT, fill, make_record_batch, offsets, read_all, up_to

LOG = "orders:0"
PIECE = len(make_record_batch(0).data)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the page cache."""
    real = os.preadv

    def preadv(fd: int, buffers: Any, position: int, flags: int = 0) -> int:
        if flags:
            raise BlockingIOError
        return real(fd, buffers, position)

    monkeypatch.setattr(os, "preadv", preadv)


@pytest.fixture
def lukewarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first hundred bytes of each read are in the page cache."""
    real = os.preadv

    def preadv(fd: int, buffers: Any, position: int, flags: int = 0) -> int:
        if flags:
            return real(fd, [memoryview(buffers[0])[:100]], position)
        return real(fd, [memoryview(buffers[0])[:1000]], position)

    monkeypatch.setattr(os, "preadv", preadv)


@pytest.fixture
def incapable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system does not know what is in the page cache."""
    real = os.preadv

    def preadv(fd: int, buffers: Any, position: int, flags: int = 0) -> int:
        if flags:
            raise OSError(95, "Operation not supported")
        return real(fd, buffers, position)

    monkeypatch.setattr(os, "preadv", preadv)


@pytest.mark.parametrize("disk", ["cold", "lukewarm", "incapable"])
async def test_slow_disk(embedded: EmbeddedEngine, request: pytest.FixtureRequest, disk: str) -> None:
    request.getfixturevalue(disk)
    store = embedded.make(index_interval_bytes=3 * PIECE)
    await store.open()
    await fill(store, LOG, *[1] * 100, segment_limits=up_to(20 * PIECE))
    assert await read_all(store, LOG, max_bytes=7 * PIECE) == list(range(100))
    for ms in (0, 33, 99):
        assert offsets(await store.find_time(LOG, ms)) == [ms]
    await store.close()


async def test_a_slow_read_does_not_stop_others(embedded: EmbeddedEngine, cold: None) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1)
    reading = asyncio.create_task(store.open_log(LOG).read(0, 100, LIMIT))
    await asyncio.sleep(0)
    assert not reading.done()
    await fill(store, LOG, 1, sync=True)
    assert offsets(await reading) == [0]
    await store.close()


class HeldPool(Executor):
    """A thread pool whose work waits until it is told to go on."""

    def __init__(self, pool: Executor) -> None:
        self.pool = pool
        self.asked = asyncio.Event()
        self.go = threading.Event()

    def submit(self, work: Any, /, *arguments: Any, **_: Any) -> "Future[Any]":
        self.asked.set()

        def wait() -> Any:
            self.go.wait()
            return work(*arguments)

        return self.pool.submit(wait)


async def read_while(embedded: EmbeddedEngine, change: Callable[[EmbeddedStore], Awaitable[object]]) -> list[int]:
    """Read a log from the start, and change it while the read waits for the disk."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * 12, sync=True, segment_limits=up_to(4 * PIECE))
    pool = store._reader._pool = HeldPool(store._readers)
    reading = asyncio.create_task(store.open_log(LOG).read(0, 20 * PIECE, LIMIT))
    await pool.asked.wait()
    await change(store)
    pool.go.set()
    page = await reading
    await store.close()
    return offsets(page)


async def test_cut_while_reading(embedded: EmbeddedEngine, cold: None) -> None:
    async def change(store: EmbeddedStore) -> None:
        await store.truncate(LOG, 2)
        await fill(store, LOG, 3)  # one batch where there were three

    assert await read_while(embedded, change) == [0, 1, 2, 3, 4]


async def test_retention_while_reading(embedded: EmbeddedEngine, cold: None) -> None:
    async def change(store: EmbeddedStore) -> None:
        await store.apply_retention(LOG, older_than=8)

    assert await read_while(embedded, change) == [8, 9, 10, 11]


async def test_drop_while_reading(embedded: EmbeddedEngine, cold: None) -> None:
    async def change(store: EmbeddedStore) -> None:
        await store.drop(LOG)
        await fill(store, LOG, 5)

    assert await read_while(embedded, change) == []


async def test_read_error(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1)

    def fail(*_: Any) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "preadv", fail)
        with pytest.raises(StoreError, match="Input/output error"):
            await store.open_log(LOG).read(0, 100, LIMIT)
    assert await read_all(store, LOG) == [0]
    await store.close()


@pytest.mark.parametrize("change", [lambda data: data[: PIECE + 10], lambda data: data[:PIECE] + bytes(2 * PIECE)])
async def test_file_changed_under_us(embedded: EmbeddedEngine, change: Callable[[bytes], bytes]) -> None:
    """Somebody else truncates or overwrites a file: an error, not rubbish and not an endless loop."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1, 1, 1)
    path = embedded.directory / "orders-0" / f"{0:020d}.log"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(StoreError):
        await store.open_log(LOG).read(1, 100, LIMIT)
    with pytest.raises(StoreError):
        await store.find_time(LOG, 2)
    embedded.crash(store)


async def test_why_records_cannot_be_read_is_logged_once_in_a_while(
    embedded: EmbeddedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * 6, sync=True, segment_limits=up_to(2 * PIECE))
    path = embedded.directory / "orders-0" / f"{2:020d}.log"
    os.truncate(path, PIECE + 10)
    for _ in range(3):
        with pytest.raises(StoreError):
            await store.open_log(LOG).read(3, 100, LIMIT)
        with pytest.raises(StoreError):
            await store.find_time(LOG, 3)
    (told,) = caplog.records
    assert f"{path}: reading failed: the file ends before byte {2 * PIECE}; records of {LOG} cannot be read: see" in (
        told.getMessage()
    )
    assert offsets(await store.open_log(LOG).read(4, 1, LIMIT)) == [4]
    embedded.crash(store)


def count_open_segments(log: str) -> int:
    """Of the logs whose names begin so: this process has other files, too."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # another thread closes files meanwhile
            found += f"/{log}-" in str(descriptor.readlink())
    return found


async def test_as_many_files_as_the_process_may_open_when_the_store_opens(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serve` makes the store first, and then raises the limit of the process."""
    limits = iter([8, 8])
    monkeypatch.setattr("korvet_fast.store.embedded.store.default_limit", lambda: next(limits))
    store = embedded.make()
    limits = iter([1000])
    await store.open()
    await asyncio.gather(*(fill(store, f"many:{number}", 1) for number in range(100)))
    assert count_open_segments("many") >= 100
    await store.close()


async def test_few_files_for_many_logs(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """More logs than open files, written, flushed and read in turn."""
    monkeypatch.setattr("korvet_fast.store.embedded.store.default_limit", lambda: 8)
    store = embedded.make()
    await store.open()
    logs = [f"many:{number}" for number in range(100)]
    opened = [store.open_log(log) for log in logs]
    for offset in range(5):
        waiting = [
            log.append([make_record_batch(offset)], offset, sync=True, segment_limits=up_to(2 * PIECE)).durable
            for log in opened
        ]
        assert count_open_segments("many") <= 8 + 16  # those of flushes under way besides
        await asyncio.gather(*waiting)
    pages = await asyncio.gather(*(read_all(store, log) for log in logs))
    assert pages == [[0, 1, 2, 3, 4]] * 100
    assert [offsets(await log.read(4, 1, LIMIT)) for log in opened] == [[4]] * 100
    assert count_open_segments("many") <= 8
    await store.close()


async def test_indexes_kept_are_bounded(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes without a row count too: of many small segments, and of segments long removed."""
    monkeypatch.setattr("korvet_fast.store.embedded.reader._INDEX_ROWS", 320)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * 50, sync=True, segment_limits=up_to(1))
    await store.close()  # all indexes are beside their segments now
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == list(range(50))
    assert len(store._reader._indexes) == 10
    await store.close()
