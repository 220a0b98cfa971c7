"""Appends that share a transaction, and the moment when it is sent. Appends of one transaction share their futures."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast.store.redis.stream.scripts import READ_STATE, TRIM
from korvet_fast.store.types import LARGE
from store.redis_log.redis_namespace import LOG, RedisNamespace, log_of
from store.scene import Scene


def append(scene: Scene, at: int, count: int, size: int) -> tuple[list[object], list[int]]:
    """So many appends in one turn: the future of each, and after each how many transactions are under way."""
    log = log_of(scene)
    futures: list[object] = []
    sent = []
    for number in range(at, at + count):
        futures.append(scene.append(LOG, number, 1, size=size).stored)
        sent.append(log.in_flight)
    return futures, sent


def together(futures: list[object]) -> list[int]:
    """How many appends there are in each transaction."""
    return [len(list(same)) for _, same in groupby(futures, id)]


async def flow(scene: Scene, proxy: RedisProxy, at: int, count: int, size: int) -> tuple[list[int], list[int]]:
    """As `append`, until all are there; nothing is answered in that turn."""
    proxy.hold()
    futures, sent = append(scene, at, count, size)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    proxy.release()
    await scene.store.open_log(LOG).append((), log_of(scene).end, sync=False).durable
    return together(futures), sent


async def test_half_of_what_was_awaited_is_sent_before_the_turn_ends(
    own_place: RedisNamespace, proxy: RedisProxy
) -> None:
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        assert await flow(scene, proxy, 0, 5, 10_000) == ([1, 4], [1, 1, 1, 1, 1])  # nothing was awaited
        assert await flow(scene, proxy, 5, 5, 10_000) == ([3, 2], [0, 0, 1, 1, 1])
        assert await flow(scene, proxy, 10, 4, 10_000) == ([3, 1], [0, 0, 1, 1])
        assert await flow(scene, proxy, 14, 4, 10_000) == ([2, 2], [0, 1, 1, 1])
        assert await scene.read_all(LOG) == list(range(18))


async def test_what_is_little_is_sent_together(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        assert await flow(scene, proxy, 0, 5, 100) == ([1, 4], [1, 1, 1, 1, 1])
        assert await flow(scene, proxy, 5, 5, 100) == ([5], [0, 0, 0, 0, 1])
        assert await flow(scene, proxy, 10, 2, 100) == ([2], [0, 0])
        assert await scene.read_all(LOG) == list(range(12))


async def test_appends_of_many_logs_are_counted_together(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    names = [f"orders:{number}" for number in range(4)]
    async with own_place.scene(proxy.url) as scene:
        for name in names:
            await scene.acquire(name)
        for number in range(3):
            proxy.hold()
            appendings = [scene.append(name, number, 1, size=10_000) for name in names]
            in_flight = [scene.store._logs[name].in_flight for name in names]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            proxy.release()
            for appending in appendings:
                await appending.stored
            assert in_flight == ([1, 1, 0, 0] if number else [1, 0, 0, 0])


@pytest.mark.parametrize("script", [READ_STATE, TRIM], ids=["asked", "cut"])
async def test_an_empty_log_begins_with_what_is_on_its_way(
    own_place: RedisNamespace, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """Redis says where an empty log begins before an append arrives there, and is heard after that was sent."""
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 3)
        if script is READ_STATE:
            await scene.delete_records(LOG, 3)
        calls = scene.store._calls
        run, appending = calls.run, []

        async def run_before_an_append(asked: str, *given: Any, **options: Any) -> Any:
            answer = asyncio.ensure_future(run(asked, *given, **options))
            await asyncio.sleep(0)
            if asked is script:
                appending.append(scene.append(LOG, 3, 2))
            return await answer

        monkeypatch.setattr(calls, "run", run_before_an_append)
        there = await (scene.bounds(LOG) if script is READ_STATE else scene.delete_records(LOG, 3))
        assert there.start == 3
        monkeypatch.undo()
        await appending[0].durable
        assert (await scene.bounds(LOG)).start == 3
        assert await scene.read_all(LOG, 3) == [3, 4]


async def test_finding_1_8_a_success_is_told_to_those_whose_it_is(
    place: RedisNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should an answer ever come out of its turn, nothing is told that the log itself does not show."""
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 1)
        pipeline = scene.store._topology.pipeline(place.key)
        post = pipeline.post
        answers: list[Callable[[], object]] = []

        def keep(parts: Any, replies: int, ended: Callable[..., object]) -> None:
            post(parts, replies, lambda *answer: answers.append(partial(ended, *answer)))

        monkeypatch.setattr(pipeline, "post", keep)
        first = scene.append(LOG, 1, 1).stored
        second = scene.append(LOG, 2, 1, segment_limits=LARGE._replace(size=1)).stored
        while len(answers) < 2:
            await asyncio.sleep(0.001)
        answers[1]()
        assert (first.done(), second.done()) == (False, False)
        answers[0]()
        await first
        await second
        assert await scene.read_all(LOG) == [0, 1, 2]


async def test_thousands_of_flushes_behind_an_append_end_with_it(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    """Consumers ask for them: whether this broker still leads is known with the outcome of what is under way."""
    async with own_place.scene(proxy.url) as scene:
        await scene.acquire(LOG)
        proxy.hold()
        appended = scene.append(LOG, 0, 1)
        end = log_of(scene).end
        flushes = [scene.store.open_log(LOG).append((), end, sync=False) for _ in range(2000)]
        await asyncio.sleep(0)
        assert not appended.stored.done()
        proxy.release()
        await asyncio.wait_for(asyncio.gather(*(flush.durable for flush in flushes)), 10)
        assert appended.durable.done()
        await scene.append(LOG, 1, 1).stored
        assert len(await scene.read_all(LOG)) == 2
