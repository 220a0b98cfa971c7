"""The order of commands: alone means alone, and nobody overtakes."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.wire.text.order import CommandOrder


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_commands_begin_in_order_and_alone(commands: list[tuple[bool, int]]) -> None:
    begun: list[int] = []
    at_work: set[int] = set()

    async def work(order: CommandOrder, number: int, alone: bool, waits: int) -> None:
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
    assert begun == list(range(len(commands)))


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
