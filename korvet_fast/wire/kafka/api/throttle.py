"""Throttling of clients that create and delete faster than the quota allows (KIP-599).

Clients that know the error are told when to try again. Requests of older versions wait instead, for as long as they
allow. They hold the memory of their answers, so they are answered early when memory is short or their connection is
lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.session import Session, Values

T = TypeVar("T")
_EXCEEDED: Final = Errors.THROTTLING_QUOTA_EXCEEDED
_LONGEST: Final = 60.0  # seconds that a request waits, whatever it allows


class Throttle:
    """The throttling of one request. `waits`: the request's version does not know the error."""

    def __init__(self, session: Session, timeout_ms: int, *, waits: bool) -> None:
        self._session = session
        self._clock = session.broker.clock
        self._waiter: asyncio.Future[None] | None = None
        self._until = self._clock.monotonic() + min(max(timeout_ms, 0) / 1000, _LONGEST) if waits else None
        self._wait = 0

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work as soon as the quota allows. Raises the work's errors, or `KorvetError` REQUEST_TIMED_OUT."""
        while True:
            try:
                return await work()
            except KorvetError as error:
                if error.error != _EXCEEDED:
                    raise
                self._wait = self._session.broker.topics.quota.throttle_ms
                if self._until is None:
                    raise
                if self._session.closed or self._clock.monotonic() + self._wait / 1000 > self._until:
                    raise KorvetError(Errors.REQUEST_TIMED_OUT, error.detail) from None
            await self._sleep(self._wait / 1000)

    def wake(self) -> None:
        """Have the request answered now: it waits no longer, and not again."""
        self._until = self._clock.monotonic()
        self._end()

    async def _sleep(self, seconds: float) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, self._end)
        self._session.delayed.add(self)
        try:
            await self._waiter
        finally:
            self._session.delayed.discard(self)
            timer.cancel()

    def _end(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def tell(self, answer: Values) -> Values:
        """The answer, with the time that its client is to wait if it was refused anything."""
        return answer | {"throttle_time_ms": self._wait if self._until is None else 0}
