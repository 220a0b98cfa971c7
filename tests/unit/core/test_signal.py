"""Waiting for a signal: by a coroutine of `run_inline`, and by a task."""

import asyncio
import gc
import weakref

import pytest

from korvet_fast.core.eager import run_inline
from korvet_fast.core.signal import Signal


async def test_who_waits_for_a_signal_goes_on_at_once_and_once() -> None:
    signal, seen = Signal(), list[str]()

    async def work() -> str:
        await signal
        seen.append("went on")
        return "over"

    run_inline(work(), lambda result, error: seen.append(f"{result} {error}"))
    assert seen == []
    signal.set()
    signal.set()
    assert seen == ["went on", "over None"], "and not in a later turn of the loop"
    await signal  # it is set: nobody waits


async def test_a_task_may_wait_for_a_signal() -> None:
    signal = Signal()

    async def work() -> str:
        await signal
        return "over"

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(signal.set)
    assert await asyncio.wait_for(task, 60) == "over"


async def test_a_task_that_waits_for_a_signal_may_be_cancelled() -> None:
    signal = Signal()

    async def work() -> None:
        await signal

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    signal.set()  # too late, and nothing happens
    assert not signal.cancel()


async def test_a_signal_that_is_over_keeps_nothing_of_who_waited() -> None:
    """Nor until the next garbage collection: the next one of what is old by then comes within the hour."""

    class End:
        def __call__(self, result: object, error: BaseException | None) -> None:
            pass

    async def work(signal: Signal) -> None:
        await signal

    gc.disable()
    try:
        signal, end = Signal(), End()
        ended = weakref.ref(end)
        run_inline(work(signal), end)
        signal.set()
        del end, signal
        assert ended() is None
        signal = Signal()
        task = asyncio.create_task(work(signal))
        cancelled = weakref.ref(task)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        del task, signal
        assert cancelled() is None
    finally:
        gc.enable()
