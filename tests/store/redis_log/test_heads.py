"""Idempotent producers of logs whose batches are taken apart: what they sent last is kept with the log."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from batches import make_batch
from korvet_fast._native import batch_headers
from korvet_fast.store.redis.stream.scripts import FORGET
from korvet_fast.store.types import LogFormat, RecordBatch
from redis_server import PROGRAMS, RedisServer
from store.engines import RedisEngine
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene


@pytest.fixture
def entries(shared_redis: Callable[[str], RedisServer]) -> RedisNamespace:
    """A place where every record is an entry."""
    server = shared_redis(PROGRAMS[1])
    return RedisNamespace(server, RedisEngine(server.url, LogFormat(10, entries_layout=True)))


def send(scene: Scene, at: int, producer: tuple[int, int, int], compression: int = 0) -> None:
    """One batch of two records behind everything; `producer`: id, epoch, first sequence."""
    first = at + scene.origin
    data = make_batch([b"x", b"y"], producer=producer, base_offset=first, compression=compression)
    really = first if at else 0
    scene.store.open_log(LOG).append([RecordBatch(data, first, first + 1, 1000)], really, sync=False)


async def acquire(scene: Scene) -> bytes:
    """Acquire the log; what is known of its producers then."""
    await scene.acquire(LOG)
    assert scene.store.producers is not None
    return scene.store.producers.recent_headers(LOG)


async def test_kept(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        assert await acquire(scene) == b""
        send(scene, 0, (7, 0, 0))
        send(scene, 2, (-1, -1, -1))
        for number in range(8):
            send(scene, 4 + 4 * number, (1 << 40, 3, 2 * number), number % 5)
            send(scene, 6 + 4 * number, (7, 0, 2 + 2 * number))
    async with entries.scene() as scene:
        headers = await acquire(scene)
        found = batch_headers(headers, False)
        assert len(found) == 10
        assert len(headers) == 610
        said = [(scene.relate(head.base_offset), head.producer_id, head.base_sequence, head.count) for head in found]
        assert said == sorted(said)
        assert said[-2:] == [(32, 1 << 40, 14, 2), (34, 7, 16, 2)]
        assert {head.producer_epoch for head in found} == {0, 3}
        # Who takes it over goes on from there.
        send(scene, 36, (7, 0, 18))
    async with entries.scene() as scene:
        found = batch_headers(await acquire(scene), False)
        assert [head.base_sequence for head in found if head.producer_id == 7] == [10, 12, 14, 16, 18]


async def test_not_of_appends_that_were_refused(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        send(scene, 0, (7, 0, 0))
        await scene.fill(LOG, 1)
        entries.xadd("value", "a", at=entries.id(4))
        send(scene, 3, (7, 0, 2))
        while scene.store._logs[LOG].transactions:  # type: ignore[attr-defined]
            await scene.bounds(LOG)
        send(scene, 5, (7, 0, 4))
        found = batch_headers(await acquire(scene), False)
        assert [head.base_sequence for head in found] == [0, 4]


async def test_bounded(entries: RedisNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was silent longest is forgotten."""
    monkeypatch.setattr("korvet_fast.store.redis.log.settlement.PRODUCERS", 3)
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        for number in range(6):
            send(scene, 2 * number, (number, 0, 0))
            await scene.bounds(LOG)
        send(scene, 12, (4, 0, 2))
    async with entries.scene() as scene:
        found = batch_headers(await acquire(scene), False)
        assert [head.producer_id for head in found] == [3, 4, 5, 4]


def forget(scene: Scene, *producers: int) -> None:
    """Have the store forget them."""
    assert scene.store.producers is not None
    for producer in producers:
        scene.store.producers.forget_producer(LOG, producer)


async def test_forgotten_ones_go_with_the_next_append(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        for number in range(4):
            send(scene, 2 * number, (number, 0, 0))
            await scene.bounds(LOG)
        while scene.store._logs[LOG].transactions:  # type: ignore[attr-defined]
            await scene.bounds(LOG)
        forget(scene, 0, 2, 3, 77)
        send(scene, 8, (3, 0, 2))  # it is back, and what it sends now is kept
    async with entries.scene() as scene:
        found = batch_headers(await acquire(scene), False)
        assert [(head.producer_id, head.base_sequence) for head in found] == [(1, 0), (3, 2)]


async def test_forgotten_ones_of_an_idle_log_go_by_themselves(
    entries: RedisNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("korvet_fast.store.redis.log.heads._AT_ONCE", 7)
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        for number in range(50):
            send(scene, 2 * number, (number, 0, 0))
        log = scene.store._logs[LOG]  # type: ignore[attr-defined]
        while log.transactions:
            await scene.bounds(LOG)
        forget(scene, *range(49))
        await scene.store.close_idle()
        assert not log.forgotten
        assert list(log.heads) == [49]
    async with entries.scene() as scene:
        found = batch_headers(await acquire(scene), False)
        assert [head.producer_id for head in found] == [49]


async def test_nothing_is_removed_that_an_append_has_set_since(
    entries: RedisNamespace,
) -> None:
    """The command that removes comes late: behind an append of the same producer, or behind another program."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        send(scene, 0, (7, 0, 0))
        await scene.bounds(LOG)
        store: Any = scene.store
        log = store._logs[LOG]
        forget(scene, 7)
        end = log.end_field
        send(scene, 2, (7, 0, 0))
        await scene.bounds(LOG)
        while log.transactions:
            await scene.bounds(LOG)
        assert await store._calls.run(FORGET, (log.key, log.state_key), log.fencing_token, end, "p7") == 0
        assert await store._calls.run(FORGET, (log.key, log.state_key), "another", log.end_field, "p7") == 0
    async with entries.scene() as scene:
        assert len(batch_headers(await acquire(scene), False)) == 1


async def test_the_table_of_forgotten_ones_shrinks(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        for number in range(2000):
            send(scene, 2 * number, (number, 0, 0))
        await scene.bounds(LOG)
        log = scene.store._logs[LOG]  # type: ignore[attr-defined]
        while log.transactions:
            await scene.bounds(LOG)
        before = sys.getsizeof(log.heads)
        forget(scene, *range(1999))
        assert sys.getsizeof(log.heads) < before / 20


async def test_one_that_is_forgotten_while_its_append_is_under_way_is_kept(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        log = scene.store._logs[LOG]  # type: ignore[attr-defined]

        async def settle() -> None:
            while log.transactions:
                await scene.bounds(LOG)

        send(scene, 0, (7, 0, 0))
        await scene.bounds(LOG)
        await settle()
        send(scene, 2, (7, 0, 2))
        assert log.transactions
        forget(scene, 7)
        await settle()
        send(scene, 4, (8, 0, 0))  # what is forgotten goes with this one
        await scene.bounds(LOG)
        await settle()
    async with entries.scene() as scene:
        found = batch_headers(await acquire(scene), False)
        assert [(head.producer_id, head.base_sequence) for head in found] == [(7, 0), (7, 2), (8, 0)]
