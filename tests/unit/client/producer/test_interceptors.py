"""Interceptors that put another message in place of the caller's: its faults are not the caller's."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Expired, Message
from redis_server import free_port

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


class Replaces:
    """Gives `message` in place of each, and notes what it is told."""

    def __init__(self, message: Message | None) -> None:
        self.message = message
        self.seen: list[Any] = []

    def on_send(self, message: Message) -> Message | None:
        self.seen.append(message.value)
        return self.message

    def on_acknowledgement(self, _metadata: Any, error: Any) -> None:
        self.seen.append(type(error))


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ("kafka", Message("t", "text")),  # type: ignore[arg-type]
        ("kafka", Message("t", b"x", partition=-5)),
        ("text", Message("t", b"x", headers=[("name", b"value")])),
    ],
    ids=["no bytes", "no partition", "not of the protocol"],
)
def test_a_message_that_cannot_be_sent_is_not_taken_from_an_interceptor(
    run: Run, caplog: pytest.LogCaptureFixture, scheme: str, message: Message
) -> None:
    """`send` raised for the caller's message, and the other interceptors never heard of it again."""
    wrong, other = Replaces(message), Replaces(None)

    async def work() -> None:
        address = f"{scheme}://127.0.0.1:{free_port()}"
        async with AsyncProducer(address, delivery_timeout_ms=50, interceptor_classes=[wrong, other]) as p:
            with pytest.raises(Expired):
                await p.send("t", b"own")
        assert wrong.seen == other.seen == [b"own", Expired]
        assert "an interceptor's on_send failed; the message is sent as it was" in caplog.text

    run(work)


def test_interceptors_do_not_see_what_is_no_message(run: Run) -> None:
    """They saw it sent, and never heard of its end."""
    interceptor = Replaces(None)

    async def work() -> None:
        p = AsyncProducer(f"127.0.0.1:{free_port()}", interceptor_classes=[interceptor])
        with pytest.raises(TypeError):
            p.send("t", "text")  # type: ignore[arg-type]
        assert interceptor.seen == []
        await p.close()

    run(work)
