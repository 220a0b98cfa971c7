"""A disk that is full, a disk that fails: an error every time, never a false acknowledgement."""

import asyncio
import errno
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from requirement import missing
from store.engines import EmbeddedEngine
from store.record_batches import fill, make_record_batch, read_all, up_to

LOG = "orders:0"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A directory in which at most 1 MiB can be written, and what makes room for more.

    A file system of its own where we may mount one; a limit on the size of a file where not.
    """
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        try:
            yield place, lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True) and None
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        yield place, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def fill_up(store: EmbeddedStore, count: int) -> list[int]:
    """Append until the disk is full; returns the offsets that were acknowledged."""
    acked: list[int] = []
    while True:
        end = (await store.bounds(LOG)).end
        batches = [make_record_batch(end + number, size=7000) for number in range(count)]
        try:
            await store.open_log(LOG).append(batches, end, sync=True).durable
        except StoreError as error:
            assert "nothing was appended" in error.detail
            return acked
        acked += range(end, end + count)


def take_the_last_byte(place: Path) -> None:
    """Not even a new file of one byte finds room from now on."""
    with (place / "rest").open("wb", buffering=0) as rest, pytest.raises(OSError, match=r"No space left|too large"):
        while True:
            rest.write(bytes(4096))
    try:
        (place / "one byte").write_bytes(b"x")
    except OSError:
        return
    missing("no file system can be mounted here: only the size of a file is limited, and small ones find room")


@pytest.mark.parametrize("start", [1, 35, 70], ids=["within the first segment", "behind it", "the end"])
async def test_records_are_deleted_from_a_full_disk(small_disk: tuple[Path, Callable[[], None]], start: int) -> None:
    """Whole segments make the room that is needed to note where the log starts; without one it fails, and says why."""
    place, make_room = small_disk
    engine = EmbeddedEngine(place / "data")
    store = engine.make()
    await store.open()
    await fill(store, LOG, *[1] * 70, sync=True, size=7000, segment_limits=up_to(100_000))
    take_the_last_byte(place)
    if start == 1:
        with pytest.raises(StoreError, match="start: No space left on device"):
            await store.delete_records(LOG, start)
        assert (await store.bounds(LOG)).start == 0
        make_room()
    assert (await store.delete_records(LOG, start)).start == start
    assert await read_all(store, LOG, start) == list(range(start, 70))
    engine.crash(store)
    make_room()
    store = engine.make()
    await store.open()
    assert (await store.bounds(LOG)).start == start
    assert await read_all(store, LOG, start) == list(range(start, 70))
    await store.close()


@pytest.mark.parametrize("count", [1, 5])
async def test_full_disk(small_disk: tuple[Path, Callable[[], None]], count: int) -> None:
    """Refused whole, readable meanwhile, going on when there is room, and as acknowledged after a crash."""
    place, make_room = small_disk
    engine = EmbeddedEngine(place)
    store = engine.make()
    await store.open()
    acked = await fill_up(store, count)
    assert len(acked) > 50
    assert await read_all(store, LOG) == acked
    assert await fill_up(store, count) == []
    size = (await store.bounds(LOG)).size
    assert (place / "orders-0" / f"{0:020d}.log").stat().st_size == size  # what was half written is gone
    engine.crash(store)
    store = engine.make()
    await store.open()
    assert await read_all(store, LOG) == acked
    make_room()
    await fill(store, LOG, 3, sync=True)
    assert await store.save("key", b"value", None)
    await store.close()
    store = engine.make()
    await store.open()
    end = len(acked)
    assert await read_all(store, LOG) == [*acked, end, end + 1, end + 2]
    await store.close()


async def test_full_disk_and_keys(small_disk: tuple[Path, Callable[[], None]]) -> None:
    place, make_room = small_disk
    engine = EmbeddedEngine(place)
    store = engine.make()
    await store.open()
    number = 0
    with pytest.raises(StoreError):
        while True:
            assert await store.save(f"key/{number}", bytes(20_000), None)
            number += 1
    assert await store.load(f"key/{number}") is None
    make_room()
    assert await store.save(f"key/{number}", b"now", None)
    engine.crash(store)
    store = engine.make()
    await store.open()
    assert len(await store.scan("key/")) == number + 1
    await store.close()


async def test_limit_on_file_size(embedded: EmbeddedEngine) -> None:
    """Any error of a write is undone, not only that of a full disk."""
    store = embedded.make()
    await store.open()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        acked = await fill_up(store, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(acked) == 14
    await fill(store, LOG, 1)
    assert await read_all(store, LOG) == list(range(15))
    await store.close()


def failing(number: int, after: int = 0) -> Callable[..., Any]:
    """A system call that fails, the first `after` times excepted."""
    calls = 0

    def call(*_: Any, **__: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("call", ["ftruncate", "fsync"])
async def test_append_that_cannot_be_undone(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Half an append is in the file and cannot be taken away: the log is closed, recovery cuts it."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 2, sync=True)
    real = os.pwrite
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", lambda fd, data, position: real(fd, memoryview(data)[:50], position))
        broken.setattr(os, "pwritev", failing(errno.ENOSPC))  # with which the rest is written
        broken.setattr(os, call, failing(errno.EIO))
        with pytest.raises(StoreError, match="nothing was appended"):
            store.open_log(LOG).append([make_record_batch(2)], 2, sync=True)
    with pytest.raises(StoreError, match="could not be undone"):
        store.open_log(LOG).append([make_record_batch(2)], 2, sync=True)
    assert await read_all(store, LOG) == [0, 1]
    with pytest.raises(StoreError, match="could not be undone"):
        await store.close()
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1]
    assert (await fill(store, LOG, 1, sync=True)).durable == 3
    await store.close()


async def test_nothing_of_a_refused_append_comes_back(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two batches one is in the file when the disk is full, and it looks whole: a crash must not bring it back."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 2, sync=True)
    real, full, calls = os.pwritev, failing(errno.ENOSPC), 0

    def write(fd: int, parts: list[Any], position: int) -> int:
        nonlocal calls
        calls += 1
        return real(fd, parts[:1], position) if calls == 1 else full()

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwritev", write)
        with pytest.raises(StoreError, match="nothing was appended"):
            store.open_log(LOG).append([make_record_batch(2), make_record_batch(3)], 2, sync=True)
    assert calls == 2
    embedded.crash(store)
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1]
    await store.close()


async def test_short_writes(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system call may take less than it was given, at any byte."""
    store = embedded.make()
    await store.open()
    one, many = os.pwrite, os.pwritev
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: one(fd, memoryview(data)[:7], position))
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, position: many(fd, [memoryview(parts[0])[:7]], position))
    store.open_log(LOG).append([make_record_batch(0), make_record_batch(1, 3), make_record_batch(4)], 0, sync=False)
    store.open_log(LOG).append([make_record_batch(5, 2)], 5, sync=False)
    monkeypatch.undo()
    assert await read_all(store, LOG) == [0, 1, 2, 3, 4, 5, 6]
    await store.close()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "; make room, appends then go on by themselves"),
        (errno.EDQUOT, "; make room, appends then go on by themselves"),
        (errno.EFBIG, r"; raise the limit of a file's size \(.*\), or set segment.bytes below it, appends then go on"),
        (errno.EMFILE, r"; raise the limit of open files \(.*\), appends then go on by themselves"),
        (errno.EACCES, "; let the broker's user write there, appends then go on by themselves"),
        (errno.EROFS, "; mount it for writing, appends then go on by themselves"),
        (errno.EIO, ""),
    ],
)
async def test_a_disk_that_takes_nothing_says_what_to_do(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    store = embedded.make()
    await store.open()
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing(number))
        with pytest.raises(StoreError, match=f"nothing was appended: {os.strerror(number)}{advice}"):
            store.open_log(LOG).append([make_record_batch(0)], 0, sync=False)
    await fill(store, LOG, 1)
    await store.close()


async def test_no_new_segment(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that cannot begin a new file stays as it is, and goes on when it can."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1)
    with monkeypatch.context() as broken:
        broken.setattr(os, "open", failing(errno.EMFILE))
        with pytest.raises(StoreError, match="Too many open files"):
            store.open_log(LOG).append([make_record_batch(1)], 1, sync=False, segment_limits=up_to(10))
        with pytest.raises(StoreError, match="Too many open files"):
            store.open_log("new:0").append([make_record_batch(0)], 0, sync=False)
    for log in (LOG, "new:0"):
        await fill(store, log, 1, segment_limits=up_to(10))
    assert await read_all(store, LOG) == [0, 1]
    assert await read_all(store, "new:0") == [0]
    await store.close()


async def test_index_that_cannot_be_written(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only recovery gets slower; the log says so."""
    store = embedded.make()
    await store.open()
    with monkeypatch.context() as broken:
        broken.setattr("korvet_fast.store.embedded.index.replace_file", failing(errno.ENOSPC))
        await fill(store, LOG, 1, 1, 1, sync=True, segment_limits=up_to(10))
        await store._commit.wait_until_idle(store._logs[LOG])
    assert "index not written, the segment will be read again: No space left on device" in caplog.text
    embedded.crash(store)
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1, 2]
    await store.close()


async def test_end_before_the_flush(embedded: EmbeddedEngine) -> None:
    """Who waits for a flush that will not come any more is told so."""
    store = embedded.make()
    await store.open()
    first, second = (store.open_log(LOG).append([make_record_batch(at)], at, sync=True).durable for at in (0, 1))
    embedded.crash(store)
    await first  # under way already
    with pytest.raises(StoreError, match="closed before"):
        await second


async def test_a_close_on_a_full_disk_says_that_records_are_safe(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 2)
    with monkeypatch.context() as broken:
        broken.setattr("korvet_fast.store.embedded.recovery.replace_file", failing(errno.ENOSPC))
        with pytest.raises(StoreError, match="No space left on device; its flushed records are safe"):
            await store.close()
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1]
    await store.close()


async def test_cut_that_fails(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 2, 2, sync=True)
    with monkeypatch.context() as broken:
        broken.setattr("korvet_fast.store.embedded.retention.replace_file", failing(errno.ENOSPC))
        with pytest.raises(StoreError):
            await store.delete_records(LOG, 1)
    assert (await store.bounds(LOG)).start == 0
    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", failing(errno.EIO))
        with pytest.raises(StoreError, match="could not be cut"):
            await store.truncate(LOG, 2)
    with pytest.raises(StoreError, match="restarted"):
        store.open_log(LOG).append([make_record_batch(4)], 4, sync=True)
    with pytest.raises(StoreError, match="could not be cut"):
        await store.close()


async def test_unusable_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        await EmbeddedStore(tmp_path / "file" / "data").open()
    with pytest.raises(StoreError, match="No such file or directory; name a directory that this user may make"):
        await EmbeddedStore(Path("/proc/nowhere")).open()


async def test_finding_1_8_a_new_data_directory_is_kept_by_those_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is flushed before anything is put into it: else a power failure takes all of it."""
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        assert not (tmp_path / "new" / "data" / ".lock").exists() or flushed[:2] == made
        real(descriptor)

    made = [str(tmp_path), str(tmp_path / "new")]
    monkeypatch.setattr(os, "fsync", fsync)
    store = EmbeddedStore(tmp_path / "new" / "data")
    await store.open()
    assert flushed[:2] == made
    await store.close()


async def test_lock(embedded: EmbeddedEngine) -> None:
    """A second store over the directory is told who has it; the lock goes with the first."""
    first = embedded.make()
    await first.open()
    await fill(first, LOG, 1)
    with pytest.raises(StoreError, match=f"in use by the process {os.getpid()}; stop it"):
        await embedded.make().open()
    await fill(first, LOG, 1)
    await first.close()
    second = embedded.make()
    await second.open()
    assert await read_all(second, LOG) == [0, 1]
    await second.close()


async def test_a_deleted_lock_file_lets_nobody_in(embedded: EmbeddedEngine) -> None:
    """It names who has the directory; the lock is the directory's own."""
    first, second = embedded.make(), embedded.make()
    await first.open()
    (embedded.directory / ".lock").unlink()
    for _ in range(2):  # a start that is refused leaves nothing that the next one could lock
        with pytest.raises(StoreError, match="in use by a process that"):
            await second.open()
    await first.close()
    await second.open()
    await second.close()


@pytest.mark.parametrize("part", ["GroupCommit", "Retention", "open_logs"])
async def test_an_open_that_fails_lets_go_of_the_directory(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    store = embedded.make()
    with monkeypatch.context() as patch:
        patch.setattr(f"korvet_fast.store.embedded.store.{part}", fail)
        with pytest.raises(StoreError, match="Too many open files"):
            await store.open()
    for again in (embedded.make(), store):
        await again.open()
        await fill(again, LOG, 1)
        await again.close()


async def test_a_lock_that_cannot_be_written_is_let_go_of(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(StoreError, match="cannot be used: No space left on device"):
            await embedded.make().open()
    store = embedded.make()
    await store.open()
    await store.close()


async def test_drop_that_leaves_files(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is gone; the files that stayed go at the next start."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1)

    def fail(directory: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr("korvet_fast.store.embedded.store.shutil.rmtree", fail)
        with pytest.raises(StoreError, match=r"orders:0 is dropped, but .* cannot be removed"):
            await store.drop(LOG)
    assert (await fill(store, LOG, 2)).end == 2
    await store.close()
    store = embedded.make()
    await store.open()
    assert not (embedded.directory / "@removed").exists()
    assert await read_all(store, LOG) == [0, 1]
    await store.close()


async def test_nothing_is_written_after_the_close(embedded: EmbeddedEngine) -> None:
    """The directory may be another process's by then."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1)
    await store.close()
    for log, at in ((LOG, 1), ("new:0", 0)):
        with pytest.raises(StoreError, match="the store is closed"):
            store.open_log(log).append([make_record_batch(at)], at, sync=False)
    with pytest.raises(StoreError, match="the store is closed"):
        await store.save("key", b"value", None)
    assert not (embedded.directory / "new-0").exists()
    await store.open()
    assert await read_all(store, LOG) == [0]
    await store.close()


async def test_close_waits_for_a_cut(embedded: EmbeddedEngine) -> None:
    """The checkpoint tells of the files that are there."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * 10, sync=True, segment_limits=up_to(10))
    cutting = asyncio.create_task(store.delete_records(LOG, 8))
    await asyncio.sleep(0)
    await store.close()
    assert (await cutting).start == 8
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [8, 9]
    await store.close()
