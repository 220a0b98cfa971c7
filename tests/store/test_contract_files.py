"""Files for people beside the logs (`PlainFiles`), on every engine that has them."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.interface import PlainFiles, Store
from korvet_fast.store.types import Bounds
from store.engines import EmbeddedEngine, Engine


def files_of(store: Store) -> PlainFiles:
    assert store.plain_files is not None
    return store.plain_files


async def test_only_an_engine_with_a_directory_has_files(engine: Engine) -> None:
    async with engine.scene() as scene:
        assert (scene.store.plain_files is not None) == (engine.rewinds and scene.store.shared is None)


async def test_a_file_holds_what_was_written_last(rewinding_engine: Engine) -> None:
    async with rewinding_engine.scene() as scene:
        files = files_of(scene.store)
        assert await files.read("a.json") is None
        for data in (b"first", b"", b"longer than the first", bytes(range(256)) * 1000, b"short"):
            await files.write("a.json", data)
            assert await files.read("a.json") == data
        assert await files.read("b.json") is None
        await asyncio.gather(*(files.write(f"{number}.json", b"%d" % number) for number in range(20)))
        rewinding_engine.crash()
    async with rewinding_engine.scene() as scene:
        files = files_of(scene.store)
        assert await files.read("a.json") == b"short"
        assert [await files.read(f"{number}.json") for number in range(20)] == [b"%d" % n for n in range(20)]
        assert await scene.store.scan("") == {}  # they are no keys, and no logs
        assert await scene.store.bounds("a.json") == Bounds(0, 0, 0, 0)


async def test_a_write_that_fails_says_so_and_leaves_what_was_there(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    files = files_of(store)
    await files.write("a.json", b"kept")
    blocked = Path(embedded.directory) / "a.json.new"
    blocked.mkdir()  # where the new content would be written
    with pytest.raises(StoreError, match=r"a\.json cannot be written: .*; make room, or see to the directory"):
        await files.write("a.json", b"lost")
    assert await files.read("a.json") == b"kept"
    blocked.rmdir()
    await files.write("a.json", b"taken")
    assert await files.read("a.json") == b"taken"
    await store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        await files.write("a.json", b"late")


async def test_a_file_that_cannot_be_read_is_named(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    (Path(embedded.directory) / "a.json").mkdir()
    with pytest.raises(StoreError, match=r"a\.json cannot be opened: Is a directory; a file belongs there"):
        await files_of(store).read("a.json")
    await store.close()
