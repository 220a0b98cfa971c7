"""Appends whose outcome is open: the connection ends, the server refuses. What is acknowledged is there, once."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.redis.log.writer import DEPTH
from korvet_fast.store.redis.stream.scripts import REPLACE_FENCE
from korvet_fast.store.types import NotLeader, OffsetConflict
from store.redis_log.redis_namespace import LOG, RedisNamespace, log_of
from store.scene import Scene


async def append_all(scene: Scene, at: int, many: int, size: int = 20) -> list["asyncio.Future[None]"]:
    """Appends of one record each, some in a turn of the loop."""
    futures = []
    for number in range(many):
        futures.append(scene.append(LOG, at + number, 1, size=size).stored)
        if number % 3 == 0:
            await asyncio.sleep(0)
    return futures


@pytest.mark.parametrize("size", [20, 50_000])
async def test_reset_within_a_command(own_place: RedisNamespace, proxy: RedisProxy, size: int) -> None:
    """Before, within and after each command of a transaction, and before its reply."""
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        end = 0
        cuts: list[Callable[[], object]] = []
        for name in (b"MULTI", b"EVAL", b"XADD", b"EXEC"):
            cuts += [lambda name=name, at=at: proxy.cut_request(name, at) for at in (0, 20, 1 << 62)]
            cuts.append(lambda name=name: proxy.lose_reply(name))
            cuts.append(lambda name=name: proxy.cut_reply(name, 3))
        for cut in cuts:
            cut()
            futures = await append_all(scene, end, 12, size)
            await asyncio.gather(*futures)
            end += 12
        assert proxy.resets == len(cuts)
        assert await scene.read_all(LOG) == list(range(end))
        assert own_place.call("XLEN", own_place.key) == end


async def test_thousands_of_flushes_behind_a_lost_append(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        proxy.lose_reply(b"EXEC")
        appended, told = scene.append(LOG, 0, 1, sync=True), list[str]()
        appended.stored.add_done_callback(lambda _: told.append("stored"))
        appended.durable.add_done_callback(lambda _: told.append("durable"))
        end = log_of(scene).end
        flushes = [scene.store.open_log(LOG).append((), end, sync=False) for _ in range(2000)]
        await asyncio.wait([flush.durable for flush in flushes], timeout=10)
        assert all(flush.stored.done() and flush.durable.done() for flush in flushes)
        assert told == ["stored", "durable"]
        assert proxy.resets == 1
        await scene.append(LOG, 1, 1).stored
        assert len(await scene.read_all(LOG)) == 2


@pytest.mark.parametrize("seed", range(3))
async def test_resets_at_random(own_place: RedisNamespace, proxy: RedisProxy, seed: int) -> None:
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        proxy.chance.seed(seed)
        proxy.reset_chance = 0.002
        futures = await append_all(scene, 0, 1500)
        await asyncio.gather(*futures)
        proxy.reset_chance = 0.0
        assert proxy.resets > 0
        assert await scene.read_all(LOG) == list(range(1500))
        assert own_place.call("XLEN", own_place.key) == 1500


async def test_lost_again_as_soon_as_it_is_known(
    own_place: RedisNamespace, proxy: RedisProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is gone when what was found missing is to be sent again: that is looked into as well."""
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        calls, cuts = scene.store._calls, 0
        ask = calls.run

        async def run(script: str, *given: Any, **options: Any) -> Any:
            nonlocal cuts
            answer = await ask(script, *given, **options)
            if script == REPLACE_FENCE and cuts < 2:
                cuts += 1
                scene.store._topology.pipeline(own_place.key).close("it was cut")
            return answer

        monkeypatch.setattr(calls, "run", run)
        proxy.cut_request(b"XADD", 0)
        futures = await append_all(scene, 0, 12)
        await asyncio.wait_for(asyncio.gather(*futures), 120)
        assert cuts == 2
        assert await scene.read_all(LOG) == list(range(12))


async def test_late_copy(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    """An append that was given up arrives after it was sent again: the server refuses it."""
    async with own_place.scene(proxy.url, 5.0) as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 1)
        proxy.hold()
        futures = await append_all(scene, 1, 5)
        pipeline = scene.store._topology.pipeline(own_place.key)
        while pipeline.up:
            await asyncio.sleep(0.01)
        assert not any(future.done() for future in futures)
        proxy.release()
        await asyncio.gather(*futures)
        assert await scene.read_all(LOG) == list(range(6))
        assert own_place.call("XLEN", own_place.key) == 6


async def test_paused_server(own_place: RedisNamespace) -> None:
    async with own_place.scene(timeout=5.0) as scene:
        await scene.acquire(LOG)
        own_place.server.pause()
        futures = await append_all(scene, 0, 5)
        pipeline = scene.store._topology.pipeline(own_place.key)
        while pipeline.up:
            await asyncio.sleep(0.01)
        own_place.server.resume()
        await asyncio.gather(*futures)
        assert await scene.read_all(LOG) == list(range(5))
        assert own_place.call("XLEN", own_place.key) == 5


async def test_taken_over_while_its_end_is_uncertain(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    """Nobody knows what became of what was sent; what was not sent is refused."""
    async with own_place.scene(proxy.url) as scene, own_place.scene() as other:
        await scene.acquire(LOG)
        proxy.hold()
        sent = scene.append(LOG, 0, 1, size=200_000).stored
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await other.acquire(LOG)
        proxy.reset_all()
        later = scene.append(LOG, 1, 1).stored
        proxy.release()
        for future in (sent, later):
            with pytest.raises((StoreError, OffsetConflict)) as refused:
                await future
            assert isinstance(refused.value, OutcomeUnknown) or refused.value.fenced
        with pytest.raises(NotLeader):
            scene.append(LOG, 2, 1)


async def test_what_was_under_way_when_the_history_broke_is_unknown(
    own_place: RedisNamespace, proxy: RedisProxy
) -> None:
    """The outcome of an append not sent yet is known: the append is never sent."""
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        proxy.hold()
        sent = [await asyncio.sleep(0, scene.append(LOG, number, 1).stored) for number in range(DEPTH)]
        await asyncio.sleep(0)
        waiting = scene.append(LOG, DEPTH, 1).stored
        scene.store._on_data_loss("another server")
        assert [type(future.exception()) for future in sent] == [OutcomeUnknown] * DEPTH
        assert type(waiting.exception()) is StoreError
        proxy.release()


async def test_scripts_forgotten(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        for number in range(5):
            own_place.call("SCRIPT", "FLUSH")
            await scene.fill(LOG, 3)
            assert (await scene.bounds(LOG)).end == 3 * number + 3


async def test_memory_full(own_place: RedisNamespace) -> None:
    """Refused in the server's words, whole; what is there can be read and retired; then it goes on."""
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        end = (await scene.fill(LOG, *[1] * 20, size=50_000)).end
        own_place.call("CONFIG", "SET", "maxmemory", "1mb")
        futures = await append_all(scene, end, 7, 50_000)
        for future in futures:
            with pytest.raises(StoreError, match=r"KAFKA_STORAGE_ERROR: .* OOM command not allowed"):
                await future
        assert await scene.read_all(LOG) == list(range(end))
        assert own_place.call("XLEN", own_place.key) == end
        with pytest.raises(NotLeader):
            scene.append(LOG, end, 1)
        own_place.call("CONFIG", "SET", "maxmemory", 0)
        await scene.acquire(LOG)
        assert (await scene.fill(LOG, 3)).end == end + 3


async def test_too_few_replicas(own_place: RedisNamespace) -> None:
    """The server takes no writes for the moment."""
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        own_place.call("CONFIG", "SET", "min-replicas-to-write", 1)
        for future in await append_all(scene, 2, 4):
            with pytest.raises(StoreError, match=r"KAFKA_STORAGE_ERROR: .* NOREPLICAS"):
                await future
        own_place.call("CONFIG", "SET", "min-replicas-to-write", 0)
        await scene.acquire(LOG)
        assert (await scene.fill(LOG, 1)).end == 3
        assert await scene.read_all(LOG) == [0, 1, 2]


async def test_another_kind_of_key(own_place: RedisNamespace) -> None:
    """Somebody has put something else where the stream should be."""
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        own_place.call("SET", own_place.key, "something else")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await scene.append(LOG, 0, 1).stored
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await scene.read(LOG, 0, 100)
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await scene.acquire(LOG)
        own_place.call("DEL", own_place.key)
        end = (await scene.acquire(LOG)).bounds.end
        assert (await scene.fill(LOG, 1)).end == end + 1


async def test_given_up(own_place: RedisNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stays away for longer than we wait: everything under way ends, and the log has to be taken anew."""
    monkeypatch.setattr("korvet_fast.store.redis.log.append_recovery.BUDGET", 0.3)
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        own_place.server.stop()
        for future in await append_all(scene, 2, 5):
            with pytest.raises(StoreError, match="cannot be asked what became of"):
                await future
        with pytest.raises(NotLeader):
            scene.append(LOG, 7, 1)
        own_place.server.start()
        granted = None
        while granted is None:
            with contextlib.suppress(StoreError):
                granted = await scene.acquire(LOG)
        assert (granted.last_record_end, granted.bounds.end) == (
            2,
            7,
        )  # above all that was to be written in that history
        assert (await scene.fill(LOG, 1)).end == 8


async def test_reply_that_is_too_large(own_place: RedisNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records much larger than those before: fewer are asked for, and the appends meanwhile are none the worse."""
    monkeypatch.setattr("korvet_fast.store.redis.connection.pipeline.REPLY_LIMIT", 300_000)
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, *[1] * 300)
        await scene.fill(LOG, *[1] * 100, size=20_000)
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        reading = asyncio.create_task(scene.read_all(LOG))
        futures = await append_all(scene, 400, 20)
        await asyncio.gather(*futures)
        found = await reading
        assert found[:400] == list(range(400))
        assert await scene.read_all(LOG, 399, 1 << 20) == list(range(399, 420))


async def test_restarted_server(own_place: RedisNamespace) -> None:
    """Its history is another one, as far as we can know: nothing is acquired any more, and nothing was lost."""
    async with own_place.scene() as scene:
        told: list[str] = []
        scene.store.shared.on_data_loss(told.append)
        await scene.acquire(LOG)
        acked = []
        futures = await append_all(scene, 0, 30)
        await futures[10]
        own_place.server.restart()
        for number, future in enumerate(futures):
            try:
                await future
                acked.append(number)
            except StoreError:
                pass
        while not told:
            await asyncio.sleep(0.01)
        assert len(told) == 1
        with pytest.raises(NotLeader):
            scene.append(LOG, 30, 1)
        granted = None
        while granted is None:
            with contextlib.suppress(StoreError):
                granted = await scene.acquire(LOG, floor=acked[-1] + 1)
        assert granted.last_record_end >= acked[-1] + 1
        there = await scene.read_offsets(LOG, 0, 1 << 20, granted.last_record_end)
        assert there[: len(acked)] == acked
        assert there == list(range(granted.last_record_end))


async def test_closed_with_appends_under_way(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        futures = await append_all(scene, 0, 30)
        log = log_of(scene)
        await scene.store.close()
        assert all(future.done() and future.exception() is None for future in futures)
        assert not log.transactions
        await scene.store.open()
        await scene.acquire(LOG)
        assert await scene.read_all(LOG) == list(range(30))
