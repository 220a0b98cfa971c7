"""Throttling of clients that create and delete faster than the quota allows (KIP-599).

Clients that know the error are told when to try again. Requests of older versions wait instead, for as long as they
allow. They hold the memory of their answers, so they are answered early when memory is short or their connection is
lost.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.session import Session, Values

T = TypeVar("T")
_EXCEEDED: Final = Errors.THROTTLING_QUOTA_EXCEEDED
_LONGEST: Final = 60.0  # seconds that a request waits, whatever it allows


class ClientMutations:
    """The client's own quota of partitions created and deleted, if it has one."""

    def __init__(self, session: Session, request: Values) -> None:
        quotas = session.broker.quotas
        self._bucket = (
            quotas.find(session.principal, request["client_id"]).get(QuotaKey.MUTATION) if quotas.is_set else None
        )
        self._now = quotas.now

    @property
    def wait_ms(self) -> int:
        """How long it takes until the quota lets a change through; 0 if it would now."""
        return 0 if self._bucket is None else math.ceil(self._bucket.take(0, self._now()) * 1000)

    def check(self) -> None:
        """Raises `KorvetError` THROTTLING_QUOTA_EXCEEDED if no change is let through now."""
        if self._bucket is not None and (wait := self.wait_ms):
            rate = f"{QuotaKey.MUTATION} = {self._bucket.rate:g} partitions a second"
            raise KorvetError(_EXCEEDED, f"{rate} is exceeded; try again in {wait} ms")

    def count(self, partitions: int) -> None:
        """So many partitions were created or deleted."""
        if self._bucket is not None:
            self._bucket.take(partitions, self._now())


class Throttle:
    """The throttling of one request, by the broker's quota and by `own`, the client's.

    `waits`: the request's version does not know the error.
    """

    def __init__(self, session: Session, request: Values, *, waits: bool) -> None:
        self.own = ClientMutations(session, request)
        self._session = session
        self._clock = session.broker.clock
        self._waiter: asyncio.Future[None] | None = None
        timeout = min(max(request["timeout_ms"], 0) / 1000, _LONGEST)
        self._until = self._clock.monotonic() + timeout if waits else None
        self._wait = 0

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work as soon as the quota allows. Raises the work's errors, or `KorvetError` REQUEST_TIMED_OUT."""
        while True:
            try:
                self.own.check()
                return await work()
            except KorvetError as error:
                if error.error != _EXCEEDED:
                    raise
                self._wait = max(self._session.broker.topics.quota.throttle_ms, self.own.wait_ms)
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
        if self._wait and (own := self.own.wait_ms):
            self._session.broker.quotas.throttled[QuotaKey.MUTATION] += 1
            self._session.mute(own / 1000)
        return answer | {"throttle_time_ms": self._wait if self._until is None else 0}
