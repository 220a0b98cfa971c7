"""Slices of files in place of bytes: the same batches, where it is known how they lie and the page cache has them."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast._native import headers
from korvet_fast.store.embedded import reader
from korvet_fast.store.embedded.cache import is_cached
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Page
from store.entries import LIMIT, fill, make_entry, up_to

LOG = "orders:0"
MIB = 1 << 20


def whole(page: Page) -> bytes:
    """All bytes of a page, the slice's too."""
    data = b"".join(page.data)
    return data if page.slice is None else data + page.slice.file.read(page.slice.position, len(page.slice))


async def test_a_large_read_is_a_slice(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "s")
    await store.open()
    await fill(store, LOG, *[10] * 40, size=2000)
    size = len(make_entry(0, 10, size=2000).data)
    page = await store.read(LOG, 0, MIB, LIMIT, slices=True)
    assert page.data == [] and page.next == 400 and page.slice is not None
    assert (page.slice.position, len(page.slice)) == (0, 40 * size)
    page = await store.read(LOG, 20, 30 * size + 1, 399, slices=True)
    assert page.slice is not None and page.next == 320
    assert (page.slice.position, len(page.slice)) == (2 * size, 30 * size)
    page = await store.read(LOG, 35, MIB, 330, slices=True)  # in the middle of a batch
    assert page.slice is not None and page.next == 330
    assert page.slice.position == 4 * size and [batch.base_offset for batch in headers(page.data[0], True)] == [30]
    assert (await store.read(LOG, 0, MIB, LIMIT)).slice is None  # nobody asked for one
    assert (await store.read(LOG, 0, 500_000, LIMIT, slices=True)).slice is None  # too small
    await store.close()


async def test_what_is_not_cached_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EmbeddedStore(tmp_path / "s")
    await store.open()
    await fill(store, LOG, *[10] * 40, size=2000)
    monkeypatch.setattr("korvet_fast.store.embedded.files.is_cached", lambda *_: False)
    page = await store.read(LOG, 0, MIB, LIMIT, slices=True)
    assert page.slice is None and page == await store.read(LOG, 0, MIB, LIMIT)
    await store.close()


async def test_a_slice_outlives_its_log(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "s", open_files=1)
    await store.open()
    await fill(store, LOG, *[10] * 40, size=2000)
    page = await store.read(LOG, 0, MIB, LIMIT, slices=True)
    assert page.slice is not None
    await store.drop(LOG)
    await fill(store, "other:0", 1)
    assert [batch.base_offset for batch in headers(whole(page), True)] == list(range(0, 400, 10))
    await store.close()


async def test_slices_in_use_keep_only_so_many_files_open(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "s", open_files=2)
    await store.open()
    pages = []
    for number in range(6):
        await fill(store, f"orders:{number}", *[10] * 40, size=2000)
        pages.append(await store.read(f"orders:{number}", 0, MIB, LIMIT, slices=True))
    assert [page.slice is not None for page in pages] == [True] * 3 + [False] * 3
    assert len({whole(page) for page in pages}) == 1
    pages.clear()
    assert (await store.read("orders:0", 0, MIB, LIMIT, slices=True)).slice is not None
    await store.close()


def test_the_cache_is_known_exactly(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10_000))
    with path.open("rb") as file:
        assert is_cached(file.fileno(), 0, 10_000)
        assert is_cached(file.fileno(), 9_999, 1)
        assert not is_cached(file.fileno(), 0, 20_000)  # there is no more
        assert not is_cached(file.fileno(), 10_000, 1)
    assert not is_cached(-1, 0, 1)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([20, 900, 5000, 30_000])), min_size=1, max_size=25),
    st.integers(20_000, 200_000),
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 300_000), st.integers(0, 110)), min_size=1, max_size=10),
)
def test_slices_hold_what_bytes_would(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[int, int]],
    piece: int,
    reads: list[tuple[int, int, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_SLICE", 1)
        asyncio.run(compare(tmp_path_factory.mktemp("slices") / "s", batches, piece, reads))


async def compare(
    directory: Path, batches: list[tuple[int, int]], piece: int, reads: list[tuple[int, int, int]]
) -> None:
    store = EmbeddedStore(directory)
    await store.open()
    for count, size in batches:
        end = (await fill(store, LOG, count, size=size, piece=up_to(piece))).end
    for start, max_bytes, limit in [*reads, (0, 1 << 30, LIMIT)]:
        bytes_ = await store.read(LOG, start, max_bytes, limit)
        page = await store.read(LOG, start, max_bytes, limit, slices=True)
        got, wanted = headers(whole(page), True), headers(b"".join(bytes_.data), True)
        assert len(whole(page)) <= max_bytes or len(got) == 1
        assert bool(got) == bool(wanted)  # there may be fewer, as it ends at a row of the index, or with its segment
        assert page.next == (got[-1].last_offset + 1 if got else start)
        assert [batch.base_offset for batch in got] == [batch.base_offset for batch in wanted[: len(got)]]
    offset = 0
    while offset < end:  # and reading on from there gets to the end
        page = await store.read(LOG, offset, 50_000, LIMIT, slices=True)
        assert page.next > offset
        offset = page.next
    await store.close()
