"""The time that the loop is busy with a piece of work: waits do not count, and results and errors come through."""

import asyncio
from collections.abc import Callable

import pytest

from korvet_fast.core.quotas import loop_time
from korvet_fast.core.quotas.loop_time import LoopTime


@pytest.fixture
def spend(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass."""
    now = [0.0]
    monkeypatch.setattr(loop_time, "monotonic", lambda: now[0])

    def spend(seconds: float) -> None:
        now[0] += seconds

    return spend


def test_work_counts_and_waits_do_not(spend: Callable[[float], None]) -> None:
    async def work() -> int:
        spend(2)
        waited: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def end() -> None:
            spend(100)  # somebody else's
            waited.set_result(7)

        asyncio.get_running_loop().call_soon(end)
        result = await waited
        spend(3)
        return result

    async def scenario() -> None:
        measured = LoopTime(work())
        assert await measured == 7
        assert measured.seconds == 5

    asyncio.run(scenario())


def test_an_error_comes_through_and_its_time_counts(spend: Callable[[float], None]) -> None:
    async def work() -> None:
        spend(2)
        raise ValueError("it")

    async def scenario() -> None:
        measured = LoopTime(work())
        with pytest.raises(ValueError, match="it"):
            await measured
        assert measured.seconds == 2

    asyncio.run(scenario())


def test_what_is_thrown_at_the_waiter_reaches_the_work(spend: Callable[[float], None]) -> None:
    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            spend(4)
            raise

    async def scenario() -> None:
        measured = LoopTime(work())

        async def wait() -> None:
            await measured

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert measured.seconds == 4

    asyncio.run(scenario())
