"""When flushes happen, and what follows when one fails."""

import asyncio

import pytest

from korvet_fast.errors import StoreError
from store.breakable import Flushes
from store.engines import EmbeddedEngine
from store.record_batches import fill, make_record_batch, read_all

LOG = "orders:0"


async def test_failing_flush(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who waited get an error; nothing more is taken, though the next flush would succeed, until reopened."""
    flushes = Flushes(monkeypatch)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 2, sync=True)
    await fill(store, "orders:1", 1, sync=True)
    flushes.broken = True
    waiting = [store.open_log(LOG).append([make_record_batch(end)], end, sync=True).durable for end in (2, 3, 4)]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [StoreError] * 3
    flushes.broken = False
    for sync in (True, False):
        with pytest.raises(StoreError, match="restarted"):
            store.open_log(LOG).append([make_record_batch(5)], 5, sync=sync)
    with pytest.raises(StoreError):
        await store.truncate(LOG, 0)
    assert (await store.bounds(LOG)).durable == 2
    assert (await fill(store, "orders:1", 1, sync=True)).durable == 2  # other logs go on
    with pytest.raises(StoreError, match="orders:0: the flush failed"):
        await store.close()
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1, 2, 3, 4]  # not acknowledged, and there: that is allowed
    assert (await fill(store, LOG, 1, sync=True)).durable == 6
    await store.close()


async def test_failing_flush_of_keys(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that may not survive are not shown either."""
    flushes = Flushes(monkeypatch)
    store = embedded.make()
    await store.open()
    assert await store.save("key", b"1", None)
    flushes.broken = True
    with pytest.raises(StoreError):
        await store.save("key", b"2", b"1")
    flushes.broken = False
    for call in (store.load("key"), store.scan(""), store.save("key", b"3", b"1")):
        with pytest.raises(StoreError, match="restarted"):
            await call
    with pytest.raises(StoreError, match="@registry: the flush failed"):
        await store.close()


async def test_failing_flush_at_close(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shutdown says so, lets go of the directory, and the log is looked at when opened."""
    flushes = Flushes(monkeypatch)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 3)
    await fill(store, "orders:1", 3, sync=True)
    flushes.broken = True
    with pytest.raises(StoreError, match="flush failed"):
        await store.close()
    flushes.broken = False
    assert "orders-0" not in (embedded.directory / "checkpoint").read_text()
    assert "orders-1" in (embedded.directory / "checkpoint").read_text()
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1, 2]
    await store.close()


async def test_an_append_while_the_close_waits_is_flushed(embedded: EmbeddedEngine) -> None:
    """The index of a full segment is being written; meanwhile somebody appends to another log, and to a new one."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1, sync=True)
    await fill(store, "orders:1", 1, sync=True)
    assert await store.save("key", b"value", None)
    writing = store._logs[LOG].indexing = asyncio.get_running_loop().create_future()
    closing = asyncio.create_task(store.close())
    for _ in range(5):
        await asyncio.sleep(0)
    for log, end in (("orders:1", 1), ("orders:2", 0)):
        store.open_log(log).append([make_record_batch(end)], end, sync=False)
    late = [store._logs[log] for log in ("orders:1", "orders:2")]
    assert [log.dirty for log in late] == [True, True]
    store._logs[LOG].indexing = None
    writing.set_result(None)
    await closing
    assert [log.dirty for log in late] == [False, False]
    checkpoint = (embedded.directory / "checkpoint").read_text()
    assert all(name in checkpoint for name in ("orders-0", "orders-1", "orders-2"))
    for log in late:
        with pytest.raises(StoreError, match="closed"):
            log.append([make_record_batch(log.end)], log.end, sync=False)


async def test_append_of_nothing_flushes_what_was_not(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes = Flushes(monkeypatch)
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1, sync=True)
    flushes.files.clear()
    await fill(store, LOG, 1, sync=False)
    assert flushes.files == []
    await store.open_log(LOG).append((), 2, sync=True).durable
    assert flushes.files == [embedded.directory / "orders-0" / f"{0:020}.log"]
    await store.close()
