"""A log that is a copy of another one: it begins where that one does, and `@registry:0` is a log like others."""

from pathlib import Path

from korvet_fast.store.embedded.store import EmbeddedStore
from store.engines import EmbeddedEngine
from store.record_batches import fill, make_record_batch, read_all

LOG = "orders:0"


async def test_a_log_begins_above_0(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path)
    store = engine.make()
    await store.open()
    await fill(store, LOG, 3, 3, sync=True)
    await store.restart(LOG, 70)
    assert (await store.bounds(LOG))[:3] == (70, 70, 70)
    assert await read_all(store, LOG) == []
    await store.open_log(LOG).append([make_record_batch(70, 4)], 70, sync=True).durable
    engine.crash(store)
    store = engine.make()
    await store.open()
    assert (await store.bounds(LOG))[:3] == (70, 74, 74)
    assert await read_all(store, LOG) == [70, 71, 72, 73]
    await store.close()


async def test_an_empty_log_that_begins_above_0_is_found_again(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    await store.restart(LOG, 5)
    await store.open_log(LOG).append((), 5, sync=True).durable
    await store.close()
    store = EmbeddedStore(tmp_path)
    await store.open()
    assert (await store.bounds(LOG))[:3] == (5, 5, 5)
    await store.close()


async def test_the_metadata_log_is_a_log(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    assert await store.save("a/b", b"1", None)
    await fill(store, "@registry:0", 2, sync=True)
    await store.close()
    store = EmbeddedStore(tmp_path)
    await store.open()
    assert await store.load("a/b") == b"1"
    assert await read_all(store, "@registry:0") == [0, 1]
    await store.close()


async def test_a_log_that_is_set_aside_is_no_log_any_more_and_can_be_read_elsewhere(tmp_path: Path) -> None:
    place, elsewhere, long = tmp_path / "data", tmp_path / "elsewhere", f"{'x' * 249}:12345"
    store = EmbeddedStore(place)
    await store.open()
    await fill(store, LOG, 3, 3, sync=True)
    await fill(store, long, 1, sync=True)
    assert await store.set_aside("nothing:0") == ""
    stray = Path(await store.set_aside(LOG))
    assert (stray.parent, stray.name.startswith("orders-0."), stray.name.endswith("-stray")) == (place, True, True)
    assert Path(await store.set_aside(long)).is_dir()
    await fill(store, LOG, 1, sync=True)
    await store.close()
    store = EmbeddedStore(place)
    await store.open()
    assert await read_all(store, LOG) == [0]
    assert stray.is_dir()
    await store.drop(LOG)
    await store.close()
    elsewhere.mkdir()
    stray.rename(elsewhere / "orders-0")
    store = EmbeddedStore(elsewhere)
    await store.open()
    assert await read_all(store, LOG) == list(range(6))
    await store.close()
