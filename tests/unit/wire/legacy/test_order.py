"""The order of a connection's requests: one after the other, and what reads waits for what was written."""

import asyncio

from korvet_fast.wire.legacy.order import RequestOrder


def test_a_request_begins_when_the_one_before_lets_it() -> None:
    async def scenario() -> None:
        order, begun = RequestOrder(), []

        async def request(number: int) -> "asyncio.Future[None]":
            turn = await order.begin()
            begun.append(number)
            return turn

        first = await request(1)
        others = [asyncio.ensure_future(request(number)) for number in (2, 3)]
        await asyncio.sleep(0)
        assert begun == [1]
        order.end(first)
        order.end(await others[0])
        order.end(await others[1])
        order.end(first)  # ending twice changes nothing
        assert begun == [1, 2, 3]
        order.end(await request(4))

    asyncio.run(scenario())


def test_reading_waits_until_what_was_appended_is_durable_or_failed() -> None:
    async def scenario() -> None:
        order = RequestOrder()
        await order.wait_durable()
        good, bad = (asyncio.get_running_loop().create_future() for _ in range(2))
        order.note([good, bad])
        reading = asyncio.ensure_future(order.wait_durable())
        good.set_result(None)
        await asyncio.sleep(0)
        assert not reading.done()
        bad.set_exception(OSError("the disk is gone"))
        await reading
        assert isinstance(bad.exception(), OSError)

    asyncio.run(scenario())


def test_reading_waits_for_the_callbacks_of_an_append_that_is_durable_already() -> None:
    """The first of them raises the high watermark."""

    async def scenario() -> None:
        order, raised = RequestOrder(), []
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        durable.add_done_callback(raised.append)
        durable.set_result(None)
        order.note([durable])
        await order.wait_durable()
        assert raised == [durable]

    asyncio.run(scenario())
