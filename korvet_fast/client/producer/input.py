"""Sarama's Input channel: messages whose results come out of `successes` and `errors`."""

from collections.abc import Awaitable, Callable

from korvet_fast.client.producer.message import Message, Outcome
from korvet_fast.client.producer.message_run import MessageRun


class InputRun(MessageRun):
    """A message that came by `input`. Its result keeps its memory until it is taken, if it is to be returned.

    `message`: as it was put; `returns`: successes, errors.
    """

    __slots__ = ("message", "returns")

    message: Message
    returns: tuple[bool, bool]

    def keeps_memory(self, outcome: Outcome) -> bool:
        """Whether the result waits to be taken."""
        return self.returns[outcome is not Outcome.DELIVERED]


class Input:
    """`await producer.input.put(message)`: waits while there is no memory, and not for the delivery."""

    def __init__(self, take: Callable[[Message], Awaitable[None]]) -> None:
        self._take = take

    async def put(self, message: Message) -> None:
        """Send a message. Its result comes out of `successes` or `errors`.

        Raises `DeliveryFailed` if it cannot be accepted, `BufferFull` after `max.block.ms`: then no result comes.
        """
        await self._take(message)
