"""JoinGroup and SyncGroup requests that wait until the other members of their group have sent theirs."""

import asyncio
from typing import TypeVar

from korvet_fast.core.groups.classic.requests import JoinResult, SyncResult
from korvet_fast.core.groups.membership.classic import ClassicMembership
from korvet_fast.wire.kafka.session import Session

A = TypeVar("A", JoinResult, SyncResult)


class DelayedJoin:
    """A waiting request, as its session sees it (Kafka's DelayedJoin and DelayedSync)."""

    __slots__ = ("_answer", "_group_id", "_membership")

    def __init__(
        self,
        membership: ClassicMembership,
        group_id: str,
        answer: "asyncio.Future[JoinResult] | asyncio.Future[SyncResult]",
    ) -> None:
        self._membership = membership
        self._group_id = group_id
        self._answer = answer

    def wake(self) -> None:
        """Have the request answered now: its connection ends, or memory is short."""
        self._membership.withdraw(self._group_id, self._answer)


async def wait(session: Session, group_id: str, answer: "asyncio.Future[A]") -> A:
    """Wait for the answer. If the connection ends first, or memory is short, the member is told to join again."""
    if answer.done():
        return answer.result()
    delayed = DelayedJoin(session.broker.groups.classic, group_id, answer)
    if session.closed:
        delayed.wake()
    session.delayed.add(delayed)
    try:
        return await answer
    finally:
        session.delayed.discard(delayed)
