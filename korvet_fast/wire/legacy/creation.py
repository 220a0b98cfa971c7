"""Topics that somebody produces to for the first time, and the wait for `controller.mutation.rate`.

Clients of 0.7 are told nothing, and do not try again: one that makes topics faster waits. One of all waits for the
quota at a time, addresses and connections in turns: thousands that look at it again and again would keep the loop busy.
"""

import asyncio
from typing import Final

from korvet_fast.core.topic_config import LAYOUT, LEGACY
from korvet_fast.core.topics.topic import Topic, may_auto_create
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.legacy.session import Session

_GONE: Final = 10.0  # seconds for which requests still wait once their client sends nothing more


class QuotaWait:
    """A request's wait. It holds the request's memory, so it is over once memory is short."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._clock = session.broker.clock
        self._short = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether not to wait any longer."""
        return self._short or self._clock.monotonic() >= self._session.closed_at + _GONE

    def wake(self) -> None:
        """Memory is short, or the client sends nothing more."""
        self._short = not self._session.closed
        self._end()

    async def sleep(self, seconds: float) -> None:
        """Wait so long, or until `wake`."""
        self._waiter = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, self._end)
        try:
            await self._waiter
        finally:
            timer.cancel()

    def _end(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def create_topic(session: Session, name: str, partitions: int) -> Topic:
    """A topic of the format `legacy`, made now or meanwhile by somebody else. Raises `KorvetError`, `StoreError`."""
    if not may_auto_create(session.broker.settings, name):
        why = "auto.create.topics.enable is false, or the name is one of Kafka's internal topics"
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"it does not exist, and is not made: {why}")
    session.check_creation("PRODUCE", name)
    wait = QuotaWait(session)
    session.delayed.add(wait)
    try:
        async with session.creator.turn():
            topic = await _create(session, name, partitions, wait)
    finally:
        session.delayed.discard(wait)
    if not topic.config.legacy:
        raise KorvetError(Errors.INVALID_REQUEST, "it was just made in another format")
    return topic


async def _create(session: Session, name: str, partitions: int, wait: QuotaWait) -> Topic:
    """Raises `KorvetError`."""
    topics = session.broker.topics
    while True:
        try:
            return await topics.auto_create(name, session.changer, {LAYOUT: LEGACY}, partitions)
        except KorvetError as error:
            if error.error != Errors.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            if wait.is_over:
                why = f"{error.detail}; it cannot wait: memory is short, or its client is gone"
                raise KorvetError(error.error, why) from None
        await wait.sleep(topics.quota.throttle_ms / 1000)  # 0: the last millisecond has passed meanwhile
