"""Sarama's Input channel: messages whose results come out of `successes` and `errors`."""

from collections.abc import Awaitable, Callable

from korvet_fast.client.producer.delivery import Delivery
from korvet_fast.client.producer.message import Message, Outcome, QueuedRecords


class InputDelivery(Delivery):
    """A message that came by `input`. Its result keeps its memory until it is taken, if it is to be returned."""

    __slots__ = ("_returns", "message")

    def __init__(
        self,
        message: Message,
        sent: Message,
        timestamp: int,
        returns: tuple[bool, bool],
        withdraw: Callable[[QueuedRecords], bool],
    ) -> None:
        """`message`: as it was put; `sent`: what interceptors made of it; `returns`: successes, errors."""
        partition = -1 if sent.partition is None else sent.partition
        super().__init__(sent.topic, sent.value, sent.key, sent.headers, partition, timestamp, withdraw)
        self.message = message
        self._returns = returns

    def keeps_memory(self, outcome: Outcome) -> bool:
        """Whether the result waits to be taken."""
        return self._returns[outcome is not Outcome.DELIVERED]


class Input:
    """`await producer.input.put(message)`: waits while there is no memory, and not for the delivery."""

    def __init__(self, take: Callable[[Message], Awaitable[None]]) -> None:
        self._take = take

    async def put(self, message: Message) -> None:
        """Send a message. Its result comes out of `successes` or `errors`.

        Raises `DeliveryFailed` if it cannot be accepted, `BufferFull` after `max.block.ms`: then no result comes.
        """
        await self._take(message)
