"""Threads that clients share: whose work is next, and what becomes of its result."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from weakref import ref

import pytest

from korvet_fast.core.fair_executor import FairExecutor, Longer
from korvet_fast.errors import CodecError, Errors, KorvetError


def test_works_of_clients_take_turns_on_the_threads() -> None:
    async def scenario() -> None:
        executor = FairExecutor(1, "test")
        begun, gate = Event(), Event()
        done: list[str] = []
        executor.run_for("here", "first", lambda: (begun.set(), gate.wait()))
        begun.wait()
        many = [executor.run_for("here", "many", done.append, "many") for _ in range(2000)]
        one = executor.run_for("here", "one", done.append, "one")
        gate.set()
        await one
        assert done.index("one") <= 1
        await asyncio.gather(*many)
        assert Counter(done) == {"many": 2000, "one": 1}
        executor.shutdown()

    asyncio.run(scenario())


def test_works_of_many_connections_of_one_address_wait_behind_one_of_another_address() -> None:
    """A stranger logged in by PLAIN on 1,500 connections at once; a batch of somebody else waited for all of them."""

    async def scenario() -> None:
        executor = FairExecutor(2, "test")
        gate = Event()
        done: list[str] = []

        held = [executor.run_for("first", number, gate.wait, 120.0) for number in range(2)]
        many = [executor.run_for("there", number, done.append, "many") for number in range(1000)]
        one = executor.run_for("here", 0, done.append, "one")
        gate.set()
        await asyncio.gather(one, *many, *held)
        assert done.index("one") <= 3  # two threads: each may be a work ahead of what it notes
        executor.shutdown()

    asyncio.run(scenario())


def test_long_works_of_many_connections_of_one_address_wait_too() -> None:
    async def scenario() -> None:
        executor = FairExecutor(2, "test")
        gate = Event()
        tried: list[str] = []
        done: list[str] = []

        def wait_at_length() -> None:
            raise Longer(gate.wait, 120.0)

        def do_at_length(name: str) -> None:
            tried.append(name)
            raise Longer(done.append, name)

        held = executor.run_for("first", 0, wait_at_length)
        many = [executor.run_for("there", number, do_at_length, "many") for number in range(1000)]
        one = executor.run_for("here", 0, do_at_length, "one")
        while len(tried) <= 1000:
            await asyncio.sleep(0.001)
        again = executor.run_for("here", 1, do_at_length, "again")  # behind all the others
        while "again" not in tried:
            await asyncio.sleep(0.001)
        gate.set()
        await asyncio.gather(one, again, *many, held)
        assert max(done.index("one"), done.index("again")) <= 4
        executor.shutdown()

    asyncio.run(scenario())


def test_who_has_a_short_work_does_not_wait_for_long_ones() -> None:
    """Each of 40 connections sent a batch that unpacks to 250 MB; an honest client waited 2.8 s for its turn."""

    async def scenario() -> None:
        executor = FairExecutor(2, "test")
        gate = Event()

        def try_first() -> str:
            raise Longer(gate.wait, 120.0)

        long = [executor.run_for("here", f"client {number}", try_first) for number in range(40)]
        short = [executor.run_for("here", "honest", int, "7") for _ in range(3)]
        assert await asyncio.wait_for(asyncio.gather(*short), 120) == [7, 7, 7]
        assert not any(one.done() for one in long)
        gate.set()
        assert await asyncio.wait_for(asyncio.gather(*long), 120) == [True] * 40
        again = executor.run_for("here", "client 0", try_first)
        assert await asyncio.wait_for(again, 120) is True
        executor.shutdown()

    asyncio.run(scenario())


def test_what_a_long_work_raises_is_told_and_the_next_is_done() -> None:
    async def scenario() -> None:
        executor = FairExecutor(1, "test")

        def fail_at_length() -> None:
            raise Longer(lambda: 1 // 0)

        def twice_longer() -> str:
            raise Longer(fail_at_length)

        for work in (fail_at_length, twice_longer, fail_at_length):
            with pytest.raises(ZeroDivisionError):
                await asyncio.wait_for(executor.run_for("here", "a", work), 120)
        assert await executor.run_for("here", "a", int, "7") == 7
        executor.shutdown()

    asyncio.run(scenario())


def test_what_a_work_raises_is_told_to_who_waits_for_it() -> None:
    async def scenario() -> None:
        executor = FairExecutor(2, "test")
        assert isinstance(executor, ThreadPoolExecutor)
        with pytest.raises(ZeroDivisionError):
            await executor.run_for("here", "a", lambda: 1 // 0)
        assert await executor.run_for("here", "a", int, "7") == 7
        executor.shutdown()

    asyncio.run(scenario())


def test_a_work_that_is_refused_leaves_nothing_behind() -> None:
    class Data:
        pass

    def refuse(data: Data) -> None:
        try:
            raise CodecError("MALFORMED", str(data))
        except CodecError as error:
            raise KorvetError(Errors.INVALID_RECORD) from error

    def refuse_at_length(data: Data) -> None:
        raise Longer(refuse, data)

    async def ask(executor: FairExecutor, work: Callable[[Data], None]) -> "ref[Data]":
        data = Data()
        with suppress(KorvetError):
            await executor.run_for("here", "client", work, data)
        return ref(data)

    async def scenario() -> None:
        executor = FairExecutor(1, "check")
        for work in (refuse, refuse_at_length):
            there = await ask(executor, work)
            await executor.run_for("here", "client", list)  # the thread has let go of what it did before
            assert there() is None
        executor.shutdown()

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_what_is_asked_of_the_threads_after_their_end_is_cancelled() -> None:
    async def scenario() -> None:
        executor = FairExecutor(1, "test")
        assert await executor.run_for("here", "a", int, "7") == 7
        executor.shutdown()
        with pytest.raises(asyncio.CancelledError):
            await executor.run_for("here", "a", int, "7")

    asyncio.run(scenario())
