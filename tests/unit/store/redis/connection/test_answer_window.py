"""Large answers come from a server a few at a time, in the order in which they were asked for."""

import asyncio

import pytest

from korvet_fast.store.redis.connection.answer_window import FULL, AnswerWindow

LARGE = FULL // 2


class Asker:
    """Calls that end when they are told to. `under_way`: those whose turn has come, in that order."""

    def __init__(self) -> None:
        self.window = AnswerWindow()
        self.under_way: list[int] = []
        self.answered = [asyncio.Event() for _ in range(6)]

    async def ask(self, number: int) -> None:
        async with self.window.turn(LARGE):
            self.under_way.append(number)
            await self.answered[number].wait()

    def begin(self, *numbers: int) -> "list[asyncio.Task[None]]":
        return [asyncio.ensure_future(self.ask(number)) for number in numbers]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_as_much_as_fills_the_window_is_under_way_and_the_others_follow_in_order() -> None:
    asker = Asker()
    calls = asker.begin(0, 1, 2, 3)
    await settle()
    assert asker.under_way == [0, 1]
    asker.answered[1].set()
    await settle()
    assert asker.under_way == [0, 1, 2]
    calls += asker.begin(4)
    for each in asker.answered:
        each.set()
    await asyncio.gather(*calls)
    assert asker.under_way == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("granted", [False, True], ids=["while it waits", "as its turn comes"])
async def test_a_call_that_is_broken_off_leaves_its_turn_to_the_next(granted: bool) -> None:
    asker = Asker()
    calls = asker.begin(0, 1, 2, 3)
    await settle()
    if granted:
        asker.answered[0].set()
        while not calls[0].done():
            await asyncio.sleep(0)
    calls[2].cancel()
    asker.answered[1].set()
    await settle()
    assert 3 in asker.under_way
    for each in asker.answered:
        each.set()
    await asyncio.gather(*calls, return_exceptions=True)
    again = asker.begin(4, 5)
    await asyncio.gather(*again)
    assert asker.under_way[-2:] == [4, 5]


async def test_an_answer_that_failed_makes_room() -> None:
    window = AnswerWindow()
    for _ in range(10):
        with pytest.raises(ConnectionError):
            async with window.turn(FULL):
                raise ConnectionError
