"""Messages that come by `input`, as Sarama's channel: what becomes of each is told somewhere."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import BufferFull, Cancelled, Expired, Message
from redis_server import free_port

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody listens."""
    return f"127.0.0.1:{free_port()}"


LOST = "a message was not delivered (failed, not written), and nobody has read the result: "


@pytest.mark.parametrize("returned", [False, True])
def test_an_error_that_nobody_takes_is_logged(
    run: Run, nowhere: str, caplog: pytest.LogCaptureFixture, returned: bool
) -> None:
    """As Sarama does with Return.Errors=false. Returned, it lay in `errors` without a word."""

    async def work() -> None:
        async with AsyncProducer(nowhere, delivery_timeout_ms=20, return_errors=returned) as p:
            await p.input.put(Message("t", b"x"))
        assert len(p.errors) == returned
        assert LOST in caplog.text

    with caplog.at_level(logging.WARNING):
        run(work)


@pytest.mark.parametrize("early", [False, True])
def test_an_error_that_is_taken_is_not_logged(
    run: Run, nowhere: str, caplog: pytest.LogCaptureFixture, early: bool
) -> None:
    """`early`: somebody waits for it, and has it only after the end of `flush`."""

    async def work() -> None:
        async with AsyncProducer(nowhere, delivery_timeout_ms=20) as p:
            taken = asyncio.ensure_future(anext(p.errors)) if early else None
            for _ in range(2):
                await p.input.put(Message("t", b"x"))
            if early:
                await p.flush()
            while p.metrics().open:
                await asyncio.sleep(0.01)
            for _ in range(2):
                assert isinstance((await (taken or anext(p.errors))).error, Expired)
                taken = None
        assert LOST not in caplog.text

    with caplog.at_level(logging.WARNING):
        run(work)


class Counts:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_send(self, message: Message) -> None:
        self.seen.append(message.value)

    def on_acknowledgement(self, _metadata: Any, error: Any) -> None:
        self.seen.append(type(error))


def test_an_interceptor_hears_of_a_message_that_was_withdrawn_while_it_waited_for_memory(
    run: Run, nowhere: str
) -> None:
    interceptor = Counts()

    async def work() -> None:
        settings = {"buffer_memory": 3000, "max_request_size": 700}
        p = AsyncProducer(nowhere, **settings, interceptor_classes=[interceptor])
        with pytest.raises(BufferFull):
            while True:
                p.try_send("t", b"x" * 100)
        interceptor.seen.clear()
        put = asyncio.ensure_future(p.input.put(Message("t", b"y" * 100)))
        await asyncio.sleep(0.01)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
        assert interceptor.seen == [b"y" * 100, Cancelled]
        await p.abort()

    run(work)
