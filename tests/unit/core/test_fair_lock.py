"""A lock that is taken in turns: by address, then by connection; who asks seldom goes before who asks all the time."""

import asyncio

import pytest

from korvet_fast.core.fair_lock import ChangeLock, Changer


class Address:
    """The address that several connections share."""


async def change(changer: Changer, order: list[str], name: str) -> None:
    async with changer.turn():
        await asyncio.sleep(0.002)
        order.append(name)


def test_one_change_waits_for_two_of_a_crowd_of_another_address() -> None:
    async def scenario() -> None:
        lock, order, crowd, other = ChangeLock(), [], Address(), Address()
        many = [lock.open(crowd) for _ in range(20)]
        works = [asyncio.create_task(change(one, order, "crowd")) for one in many for _ in range(5)]
        await asyncio.sleep(0.02)
        before = len(order)
        await change(lock.open(other), order, "other")
        assert before <= order.index("other") <= before + 2
        await asyncio.gather(*works)
        assert order.count("crowd") == 100

    asyncio.run(scenario())


def test_a_connection_that_asks_seldom_goes_before_those_of_its_address_that_ask_much() -> None:
    async def scenario() -> None:
        lock, order, address = ChangeLock(), [], Address()
        many = [lock.open(address) for _ in range(20)]
        works = [asyncio.create_task(change(one, order, "much")) for one in many for _ in range(5)]
        while len(order) < 45:  # each has had a turn by then
            await asyncio.sleep(0.001)
        before = len(order)
        await change(lock.open(address), order, "seldom")
        assert order.index("seldom") <= before + 2
        await asyncio.gather(*works)

    asyncio.run(scenario())


def test_the_changes_of_one_connection_keep_their_order_and_those_who_ask_seldom_do_not_stop_the_others() -> None:
    async def scenario() -> None:
        lock, order, address = ChangeLock(), [], Address()
        one = lock.open(address)
        works = [asyncio.create_task(change(one, order, f"{number:02}")) for number in range(10)]
        seldom = [asyncio.create_task(change(lock.open(address), order, "seldom")) for _ in range(30)]
        await asyncio.gather(*works)
        assert [name for name in order if name != "seldom"] == [f"{number:02}" for number in range(10)]
        assert order.count("seldom") < 25
        await asyncio.gather(*seldom)

    asyncio.run(scenario())


def test_whoever_fails_or_is_cancelled_lets_go() -> None:
    async def scenario() -> None:
        lock, order = ChangeLock(), []
        changer = lock.open(lock)
        with pytest.raises(ZeroDivisionError):
            async with changer.turn():
                raise ZeroDivisionError
        async with changer.turn():
            waiting = asyncio.create_task(change(changer, order, "cancelled"))
            await asyncio.sleep(0)
            waiting.cancel()
        await change(changer, order, "next")
        assert waiting.cancelled()
        assert order == ["next"]

    asyncio.run(scenario())
