"""The shared future: who is told, in which order, and in how many turns of the loop."""

import asyncio
from functools import partial
from typing import Any

import pytest

from korvet_fast.store.shared_future import SharedFuture


def make() -> SharedFuture[None]:
    return SharedFuture(loop=asyncio.get_running_loop())


async def test_all_are_told_by_one_call_of_the_loop_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    future, told, loop = make(), list[Any](), asyncio.get_running_loop()
    calls, call_soon = [], loop.call_soon
    monkeypatch.setattr(loop, "call_soon", lambda *given, **more: (calls.append(given), call_soon(*given, **more))[1])
    for number in range(3):
        future.add_done_callback(partial(lambda number, ended: told.append((number, ended.done())), number))
    future.set_result(None)
    assert not told  # not in the middle of the work of whoever ends it
    await asyncio.sleep(0)
    assert told == [(0, True), (1, True), (2, True)]
    assert [call for call in calls if call[0] == future._tell] == [(future._tell,)]


async def test_they_are_told_before_the_tasks_that_wait() -> None:
    future, told = make(), list[str]()

    async def wait() -> None:
        await future
        told.append("task")

    task = asyncio.get_running_loop().create_task(wait())
    await asyncio.sleep(0)
    future.add_done_callback(lambda _: told.append("callback"))
    future.set_result(None)
    await task
    assert told == ["callback", "task"]


async def test_end_tells_at_once_and_wakes_tasks_later() -> None:
    future, told = make(), list[str]()
    future.add_done_callback(lambda _: told.append("callback"))
    waiting = asyncio.ensure_future(asyncio.wait_for(future, 5))
    await asyncio.sleep(0)
    future.end(None)
    assert told == ["callback"]
    await waiting
    assert told == ["callback"]  # once


async def test_who_comes_late_is_told_with_the_next_turn() -> None:
    future, told = make(), list[bool]()
    future.end(None)
    future.add_done_callback(lambda ended: told.append(ended.done()))
    assert not told
    await asyncio.sleep(0)
    assert told == [True]


@pytest.mark.parametrize("failure", [ValueError("broken"), asyncio.CancelledError("broken")])
async def test_a_callback_that_fails_is_reported_and_the_others_are_told(failure: BaseException) -> None:
    future, told, reported = make(), list[str](), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def fail(_: object) -> None:
        raise failure

    future.add_done_callback(fail)
    future.add_done_callback(lambda _: told.append("other"))
    future.end(None)
    assert told == ["other"]
    assert [str(context["exception"]) for context in reported] == ["broken"]


async def test_removed_callbacks_are_not_told() -> None:
    future, told = make(), list[str]()

    def callback(_: object) -> None:
        told.append("removed")

    future.add_done_callback(callback)
    future.add_done_callback(lambda _: told.append("kept"))
    assert future.remove_done_callback(callback) == 1
    assert future.remove_done_callback(callback) == 0
    future.set_result(None)
    await asyncio.sleep(0)
    assert told == ["kept"]


async def test_failures_reach_callbacks_and_tasks() -> None:
    future, told = make(), list[BaseException | None]()
    future.add_done_callback(lambda ended: told.append(ended.exception()))
    error = ValueError("lost")
    future.fail(error)
    with pytest.raises(ValueError, match="lost"):
        await future
    await asyncio.sleep(0)
    assert told == [error]


async def test_nobody_cancels_it_for_the_others() -> None:
    future = make()
    assert not future.cancel()
    done, pending = await asyncio.wait([future], timeout=0.01)
    assert (done, pending) == (set(), {future})
    future.set_result(None)
    await asyncio.wait_for(future, 1)
