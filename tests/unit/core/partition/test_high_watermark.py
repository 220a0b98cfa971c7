"""The offset up to which consumers may read, and how waiters for it are told."""

import asyncio
import tracemalloc
from asyncio import Future

import pytest

from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.core.partition.high_watermark import HighWatermark
from korvet_fast.errors import StoreError


class Watched:
    """A watermark as a watch sees a partition."""

    draining = False
    entries_layout = False

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.high_watermark = HighWatermark(self.failures.append)
        self.delayed_fetches = self.high_watermark.delayed_fetches

    def subscribe(self) -> None:
        raise AssertionError("nobody else writes here")

    def available_bytes(self, offset: int) -> int:
        return self.high_watermark.count_available_bytes(offset) or 0


def future() -> "Future[None]":
    return asyncio.get_running_loop().create_future()


def done() -> "Future[None]":
    ended = future()
    ended.set_result(None)
    return ended


async def turn() -> None:
    """Let the loop run the callbacks that are due."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_what_is_durable_at_once_is_readable_at_once() -> None:
    async def run() -> None:
        high_watermark = Watched().high_watermark
        high_watermark.add(0, 5, 100, done())
        assert (
            high_watermark.offset,
            high_watermark.count_available_bytes(0),
            high_watermark.count_available_bytes(5),
        ) == (5, 100, 0)

    asyncio.run(run())


def test_a_shared_future_covers_every_append_made_with_it() -> None:
    async def run() -> None:
        high_watermark = Watched().high_watermark
        first, second = future(), future()
        high_watermark.add(0, 5, 100, first)
        high_watermark.add(5, 7, 10, first)
        high_watermark.add(7, 9, 1, second)
        assert high_watermark.find_flush(6) is first
        assert high_watermark.find_flush(7) is second
        first.set_result(None)
        await turn()
        assert (high_watermark.offset, high_watermark.count_available_bytes(0)) == (7, 110)
        assert high_watermark.find_flush(6) is None
        second.set_result(None)
        await turn()
        assert (high_watermark.offset, high_watermark.count_available_bytes(5)) == (9, 11)

    asyncio.run(run())


def test_rounds_that_end_out_of_order_show_nothing_early() -> None:
    async def run() -> None:
        high_watermark = Watched().high_watermark
        first, second = future(), future()
        high_watermark.add(0, 5, 100, first)
        high_watermark.add(5, 7, 10, second)
        second.set_result(None)
        await turn()
        assert high_watermark.offset == 0
        first.set_result(None)
        await turn()
        assert high_watermark.offset == 7

    asyncio.run(run())


def test_what_is_durable_at_once_waits_for_what_is_not_before_it() -> None:
    async def run() -> None:
        high_watermark = Watched().high_watermark
        first = future()
        high_watermark.add(0, 5, 100, first)
        high_watermark.add(5, 7, 10, done())
        assert high_watermark.offset == 0
        first.set_result(None)
        await turn()
        assert high_watermark.offset == 7

    asyncio.run(run())


@pytest.mark.parametrize("cancel", [False, True])
def test_a_failed_append_is_never_shown(cancel: bool) -> None:
    async def run() -> None:
        watched = Watched()
        first, second = future(), future()
        watched.high_watermark.add(0, 5, 100, first)
        watched.high_watermark.add(5, 7, 10, second)
        if cancel:
            first.cancel()
        else:
            first.set_exception(StoreError("disk gone"))
        second.set_result(None)
        await turn()
        assert watched.high_watermark.offset == 0
        assert watched.failures

    asyncio.run(run())


@pytest.mark.parametrize("behind", [False, True])
def test_what_has_failed_already_is_not_shown_either(behind: bool) -> None:
    async def run() -> None:
        watched = Watched()
        first, second = future(), future()
        second.set_exception(StoreError("no replica"))
        if behind:
            watched.high_watermark.add(0, 5, 100, first)
        watched.high_watermark.add(5, 7, 10, second)
        first.set_result(None)
        await turn()
        assert watched.high_watermark.offset == (5 if behind else 0)
        assert set(watched.failures) == {second.exception()}

    asyncio.run(run())


def test_bytes_are_counted_exactly_near_the_end_and_unknown_far_from_it() -> None:
    async def run() -> None:
        high_watermark = Watched().high_watermark
        ended = done()
        for offset in range(1000):
            high_watermark.add(offset, offset + 1, 10, ended)
        assert [high_watermark.count_available_bytes(offset) for offset in (1000, 999, 950)] == [0, 10, 500]
        assert high_watermark.count_available_bytes(0) is None
        high_watermark.reset(1000)
        assert high_watermark.count_available_bytes(999) is None

    asyncio.run(run())


def test_a_watch_wakes_when_enough_is_readable_over_all_its_partitions() -> None:
    async def run() -> None:
        one, two = Watched(), Watched()
        one.high_watermark.add(0, 1, 30, done())
        with DelayedFetch([(one, 0), (two, 0)], 100) as watch:
            waiting = asyncio.create_task(watch.wait(60))
            await turn()
            two.high_watermark.add(0, 1, 69, done())
            await turn()
            assert not waiting.done()
            one.high_watermark.add(1, 2, 1, done())
            assert await waiting
        assert one.delayed_fetches == {}
        assert two.delayed_fetches == {}

    asyncio.run(run())


def test_a_watch_that_has_enough_does_not_wait() -> None:
    async def run() -> None:
        watched = Watched()
        watched.high_watermark.add(0, 1, 30, done())
        with DelayedFetch([(watched, 0)], 30) as watch:
            assert await watch.wait(60)

    asyncio.run(run())


def test_a_watch_ends_with_its_time() -> None:
    async def run() -> None:
        watched = Watched()
        with DelayedFetch([(watched, 0)], 1) as watch:
            assert not await watch.wait(0)

    asyncio.run(run())


def test_waking_ends_a_watch_though_nothing_came() -> None:
    async def run() -> None:
        watched = Watched()
        with DelayedFetch([(watched, 0)], 1) as watch:
            waiting = asyncio.create_task(watch.wait(60))
            await turn()
            watched.high_watermark.wake()
            assert await waiting
        watched.draining = True
        with DelayedFetch([(watched, 0)], 1) as watch:
            assert await watch.wait(60)

    asyncio.run(run())


def test_a_cancelled_watch_leaves_nothing_behind() -> None:
    async def run() -> None:
        watched = Watched()

        async def poll() -> None:
            with DelayedFetch([(watched, 0)], 1) as watch:
                await watch.wait(60)

        waiting = asyncio.create_task(poll())
        await turn()
        assert len(watched.delayed_fetches) == 1
        waiting.cancel()
        await asyncio.wait([waiting])
        assert watched.delayed_fetches == {}

    asyncio.run(run())


def test_what_is_remembered_of_appends_takes_two_numbers_for_each() -> None:
    async def run() -> None:
        marks = [Watched().high_watermark for _ in range(50)]
        ended = done()
        tracemalloc.start()
        try:
            for offset in range(1 << 20, (1 << 20) + 500):
                for high_watermark in marks:
                    high_watermark.add(offset, offset + 1, 1000, ended)
            taken = tracemalloc.get_traced_memory()[0] / len(marks)
        finally:
            tracemalloc.stop()
        assert taken < 1.5 * 128 * 16

    asyncio.run(run())


class Compared(DelayedFetch):
    """A delayed fetch that counts how often one is compared with another."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return self is other

    __hash__ = DelayedFetch.__hash__


def test_a_fetch_that_ends_is_not_searched_for_among_all_that_wait() -> None:
    watched, many = Watched(), 1000
    fetches = [Compared([(watched, 0)], 1).__enter__() for _ in range(many)]
    Compared.times = 0
    for fetch in reversed(fetches):  # as it is when many clients go at once
        fetch.__exit__(None, None, None)
    assert watched.delayed_fetches == {}
    assert Compared.times < many
