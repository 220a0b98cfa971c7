"""Reads large enough to be handed out as they lie in the page cache."""

import os
import random
import resource
from pathlib import Path

import pytest

from korvet_fast._native import FileMapping, batch_headers
from korvet_fast.errors import CodecError, StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from store.engines import EmbeddedEngine
from store.record_batches import LIMIT, fill, make_record_batch, offsets, read_all, up_to

LOG = "orders:0"
PAGE = resource.getpagesize()
LARGE = 100_000  # bytes of a record
PIECE = len(make_record_batch(0, size=LARGE).data)
MANY = 20


async def open_filled(embedded: EmbeddedEngine, segment_bytes: int = 1 << 30, count: int = MANY) -> EmbeddedStore:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * count, size=LARGE, segment_limits=up_to(segment_bytes), sync=True)
    return store


def is_mapped(piece: object) -> bool:
    return isinstance(piece, memoryview) and piece.readonly


async def test_no_copy_is_made(embedded: EmbeddedEngine) -> None:
    store = await open_filled(embedded)
    page = await store.open_log(LOG).read(3, 5 * PIECE, LIMIT)
    assert [is_mapped(piece) for piece in page.data] == [True]
    assert offsets(page) == [3, 4, 5, 6, 7]
    # What comes behind the mapping's first sight of the file is seen through it.
    await fill(store, LOG, *[1] * MANY, size=LARGE)
    assert offsets(await store.open_log(LOG).read(MANY, 5 * PIECE, LIMIT)) == [20, 21, 22, 23, 24]
    await store.close()


async def test_what_is_lent_are_whole_batches(embedded: EmbeddedEngine) -> None:
    """Batches of all sizes, some far smaller than what lies between two rows of the index, by the rules of a read."""
    store = embedded.make()
    await store.open()
    chance = random.Random(5)
    sizes = [chance.choice((20, 100, 1000, 5000, 30_000, 200_000)) for _ in range(400)]
    for size in sizes:
        await fill(store, LOG, chance.choice((1, 1, 3)), size=size, segment_limits=up_to(5_000_000))
    end = (await store.bounds(LOG)).end
    lent = 0
    for _ in range(500):
        start, room = chance.randrange(end), chance.choice((50_000, 1 << 16, 100_000, 300_000, 1 << 20, 8 << 20))
        limit = chance.choice((LIMIT, end, chance.randint(start, end)))
        page = await store.open_log(LOG).read(start, room, limit)
        copied = await store.open_log(LOG).read(start, room, limit, copy=True)
        lent += any(map(is_mapped, page.data))
        assert not any(map(is_mapped, copied.data))
        assert bool(page.data) == bool(copied.data)
        whole = b"".join(page.data)
        assert b"".join(copied.data).startswith(whole)  # it may end at the last row of the index before
        found = batch_headers(whole, True)
        assert sum(batch.size for batch in found) == len(whole)
        assert not found or page.next == found[-1].last_offset + 1 <= limit
        assert len(whole) <= room or len(found) == 1
        assert len(page.data) != 1 or len(copied.data) != 1 or len(whole) > len(copied.data[0]) - 8000
    assert lent > 200
    await store.close()


async def test_whole_batches_that_leave_room_are_not_copied(embedded: EmbeddedEngine) -> None:
    """A fetch of 64 KiB from batches of 16 KB: only whole batches are in its answer, so it is a little shorter."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * MANY, size=16_000)
    for start in (0, 7):
        page = await store.open_log(LOG).read(start, 1 << 16, LIMIT)
        assert [is_mapped(piece) for piece in page.data] == [True]
        assert offsets(page) == list(range(start, start + 4))
    await store.close()


async def test_a_small_read_is_a_copy(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1)
    (piece,) = (await store.open_log(LOG).read(0, 100, LIMIT)).data
    assert not is_mapped(piece)
    await store.close()


async def test_views_outlive_the_log(embedded: EmbeddedEngine) -> None:
    """A reply may still be on its way to a slow consumer."""
    store = await open_filled(embedded, segment_bytes=4 * PIECE)
    first = await store.open_log(LOG).read(0, 4 * PIECE, LIMIT)
    last = await store.open_log(LOG).read(MANY - 3, 3 * PIECE, LIMIT)
    await store.apply_retention(LOG, older_than=8)
    await store.drop(LOG)
    await store.close()
    assert is_mapped(first.data[0]) and is_mapped(last.data[0])
    assert offsets(first) == [0, 1, 2, 3]
    assert offsets(last) == [17, 18, 19]


async def test_a_log_made_anew_is_another_file(embedded: EmbeddedEngine) -> None:
    store = await open_filled(embedded)
    assert await read_all(store, LOG, max_bytes=5 * PIECE) == list(range(MANY))
    await store.drop(LOG)
    await fill(store, LOG, 2, 2, size=LARGE)
    assert await read_all(store, LOG, max_bytes=5 * PIECE) == [0, 1, 2, 3]
    await store.close()


async def test_what_is_not_cached_is_read_in_a_thread(embedded: EmbeddedEngine) -> None:
    store = await open_filled(embedded)
    await store.close()
    store = embedded.make()
    await store.open()
    descriptor = os.open(embedded.directory / "orders-0" / f"{0:020d}.log", os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    size = os.fstat(descriptor).st_size
    evicted = FileMapping(descriptor, 0, size).cached(0, size) is None
    os.close(descriptor)
    page = await store.open_log(LOG).read(0, MANY * PIECE, LIMIT)
    assert not (evicted and is_mapped(page.data[0]))  # a file system in memory keeps what it has
    assert offsets(page) == list(range(MANY))
    await store.close()


async def test_a_file_cut_short_under_us(embedded: EmbeddedEngine) -> None:
    """An error where bytes have gone, and not the signal that ends a process; what is still there is served."""
    store = await open_filled(embedded)
    assert await read_all(store, LOG, max_bytes=5 * PIECE) == list(range(MANY))
    os.truncate(embedded.directory / "orders-0" / f"{0:020d}.log", 10 * PIECE)
    assert offsets(await store.open_log(LOG).read(3, 5 * PIECE, LIMIT)) == [3, 4, 5, 6, 7]
    for start in (8, 12):
        with pytest.raises(StoreError, match="the file ends before"):
            await store.open_log(LOG).read(start, 5 * PIECE, LIMIT)
    embedded.crash(store)


async def test_a_file_cut_short_within_its_last_page(embedded: EmbeddedEngine) -> None:
    """The page is cached whole, with zeros where the bytes have gone."""
    store = await open_filled(embedded)
    assert offsets(await store.open_log(LOG).read(MANY - 3, 3 * PIECE, LIMIT)) == [17, 18, 19]
    path = embedded.directory / "orders-0" / f"{0:020d}.log"
    size = path.stat().st_size
    assert size % PAGE > 1
    os.truncate(path, size - 1)
    with pytest.raises(StoreError, match="the file ends before"):
        await store.open_log(LOG).read(MANY - 3, 3 * PIECE, LIMIT)
    embedded.crash(store)


async def test_few_mappings_for_many_logs(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    for number in range(40):
        await fill(store, f"many:{number}", 1, size=LARGE)
    for number in range(40):
        page = await store.open_log(f"many:{number}").read(0, PIECE, LIMIT)
        assert is_mapped(page.data[0])
        assert offsets(page) == [0]
    del page
    lines = Path("/proc/self/maps").read_text().splitlines()
    assert sum(str(embedded.directory) in line for line in lines) == 16
    await store.close()
    assert str(embedded.directory) not in Path("/proc/self/maps").read_text()


async def test_no_address_space_left(embedded: EmbeddedEngine) -> None:
    """`ulimit -v`: what cannot be mapped is copied."""
    store = await open_filled(embedded)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), limits[1]))
    try:
        page = await store.open_log(LOG).read(0, MANY * PIECE, LIMIT)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert not is_mapped(page.data[0])
    assert offsets(page) == list(range(MANY))
    await store.close()


async def test_a_read_larger_than_a_window(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * 40, size=1 << 20)
    for start in (0, 14, 15, 16, 31):  # within a window, and over the place where the next one starts
        assert offsets(await store.open_log(LOG).read(start, 3 << 20, LIMIT)) == [start, start + 1]
    page = await store.open_log(LOG).read(0, 64 << 20, LIMIT)
    assert offsets(page) == list(range(40))
    await store.close()


def test_bytes_beyond_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (2 * PAGE + 1))
    with path.open("rb") as file:
        mapping = FileMapping(file.fileno(), PAGE, 8 * PAGE)
    assert bytes(mapping.cached(PAGE, PAGE + 1) or b"") == b"x"
    assert mapping.cached(0, 2 * PAGE + 1) is None
    with path.open("ab") as file:
        file.write(b"y" * PAGE)
    assert bytes(mapping.cached(PAGE, PAGE + 2) or b"") == b"xy"
    view = mapping.cached(5, 10)
    assert view is not None and view.readonly and view.tobytes() == b"x" * 5
    del mapping
    assert view.tobytes() == b"x" * 5


@pytest.mark.parametrize(("start", "end"), [(0, 0), (2, 1), (0, PAGE + 1), (PAGE, PAGE + 1)])
def test_bytes_outside_of_the_mapping(tmp_path: Path, start: int, end: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * PAGE))
    with path.open("rb") as file:
        mapping = FileMapping(file.fileno(), 0, PAGE)
    with pytest.raises(CodecError):
        mapping.cached(start, end)


def test_what_cannot_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * PAGE))
    with path.open("rb") as file:
        with pytest.raises(OSError, match="Invalid argument"):
            FileMapping(file.fileno(), 1, PAGE)
        with pytest.raises(OSError, match="Invalid argument"):
            FileMapping(file.fileno(), 0, 0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        FileMapping(-1, 0, PAGE)


def test_what_is_lent_is_in_the_page_table(tmp_path: Path) -> None:
    """So that the kernel finds it at once when it sends it; nobody here has looked at it."""
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    with path.open("rb") as file:
        mapping = FileMapping(file.fileno(), 0, 2 << 20)
    assert resident_of(path) == 0
    for start, end in ((5 * PAGE, 200_000), (200_000, 500_000), (900_000, 1 << 20)):
        view = mapping.cached(start, end)
        assert view is not None
        assert resident_of(path) >= end - start
    before = resident_of(path)
    assert mapping.cached(0, 1 << 20) is not None
    assert before <= resident_of(path) <= 1 << 20


def resident_of(path: Path) -> int:
    """Bytes of the file that the page table of this process has."""
    maps = Path("/proc/self/smaps").read_text().split(f"{path}\n")[1:]
    return sum(int(after.split("Rss:")[1].split()[0]) * 1024 for after in maps)
