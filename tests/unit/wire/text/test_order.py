"""The order of commands: alone means alone, and nobody overtakes."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.wire.text.order import CommandOrder


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3)), max_size=12))
def test_commands_begin_in_the_order_in_which_they_come_and_alone(commands: list[tuple[bool, int, int]]) -> None:
    """Each is alone or not, comes after so many turns of the loop, and is at work for so many."""
    came: list[int] = []
    begun: list[int] = []
    at_work: set[int] = set()

    async def work(order: CommandOrder, number: int, alone: bool, comes: int, waits: int) -> None:
        for _ in range(comes):
            await asyncio.sleep(0)
        came.append(number)
        async with order.alone() if alone else order.beside():
            assert not at_work or not (alone or any(commands[other][0] for other in at_work))
            begun.append(number)
            at_work.add(number)
            for _ in range(waits):
                await asyncio.sleep(0)
            at_work.discard(number)

    async def run() -> None:
        order = CommandOrder()
        await asyncio.gather(*(work(order, number, *command) for number, command in enumerate(commands)))
        async with order.alone():  # nothing is left behind
            assert not at_work

    asyncio.run(run())
    assert begun == came


def test_who_comes_before_the_one_that_waited_goes_on_does_not_overtake_it() -> None:
    """A run that has waited goes on in the loop's next turn, and a line may be read before: its record was first."""
    begun: list[str] = []

    async def work(order: CommandOrder, name: str) -> None:
        async with order.beside():
            begun.append(name)

    async def run() -> None:
        order = CommandOrder()
        async with order.alone():
            waiting = asyncio.create_task(work(order, "waited"))
            await asyncio.sleep(0)
        await work(order, "came later")
        await waiting

    asyncio.run(run())
    assert begun == ["waited", "came later"]


def test_what_fails_lets_the_next_one_begin() -> None:
    async def run() -> None:
        order = CommandOrder()
        for turn in (order.alone, order.beside, order.alone):
            try:
                async with turn():
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        async with order.alone():
            pass

    asyncio.run(run())
