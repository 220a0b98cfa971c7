"""Coroutines that run without tasks, and side by side."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from korvet_fast.core.eager import gather, gather_bounded


def test_what_needs_no_wait_is_done_without_one() -> None:
    async def give(value: int) -> int:
        return value

    running: Coroutine[Any, Any, list[int]] = gather([give(1), give(2), give(3)])
    with pytest.raises(StopIteration) as ended:
        running.send(None)
    assert ended.value.value == [1, 2, 3]


def test_waits_are_side_by_side_and_results_in_order() -> None:
    async def run() -> None:
        gates = [asyncio.get_running_loop().create_future() for _ in range(3)]
        begun: list[int] = []

        async def wait(index: int) -> int:
            begun.append(index)
            await asyncio.sleep(0)
            return int(await gates[index])

        running = asyncio.ensure_future(gather([wait(index) for index in range(3)]))
        await asyncio.sleep(0)
        assert begun == [0, 1, 2]
        for index in (2, 0, 1):
            gates[index].set_result(10 * index)
        assert await running == [0, 10, 20]

    asyncio.run(run())


def test_nothing_to_run_is_nothing() -> None:
    assert asyncio.run(gather([])) == []


def test_a_failure_is_raised_when_all_have_ended() -> None:
    async def run() -> None:
        ended: list[str] = []

        async def fail() -> None:
            raise ValueError("wrong")

        async def go_on() -> None:
            await asyncio.sleep(0)
            ended.append("it")

        with pytest.raises(ValueError, match="wrong"):
            await gather([fail(), go_on()])
        assert ended == ["it"]

    asyncio.run(run())


@pytest.mark.parametrize("waits", [False, True])
async def test_a_failure_keeps_nothing_of_what_ran_beside_it(waits: bool) -> None:
    """Nor until the next garbage collection, within the hour: a store that is down fails all partitions at each try."""

    class Result:
        pass

    async def succeed(results: "list[weakref.ref[Result]]") -> Result:
        result = Result()
        results.append(weakref.ref(result))
        return result

    async def fail() -> Result:
        if waits:
            await asyncio.sleep(0)
        raise ValueError("wrong")

    results: list[weakref.ref[Result]] = []
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            await gather([succeed(results), fail()])
        assert [result() for result in results] == [None]
    finally:
        gc.enable()


def test_many_are_run_some_at_a_time() -> None:
    async def run() -> None:
        under_way = most = done = 0

        async def work(_: int) -> None:
            nonlocal under_way, most, done
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            done += 1

        await gather_bounded(range(200), work)
        assert (done, most) == (200, 64)

    asyncio.run(run())
