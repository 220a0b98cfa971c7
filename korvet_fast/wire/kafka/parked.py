"""Requests that wait in a group until its other members have done their part."""

import asyncio
from typing import TypeVar

from korvet_fast.core.groups.coordinator import Coordinator
from korvet_fast.core.groups.members import Joined, Synced
from korvet_fast.wire.kafka.session import Session

A = TypeVar("A", Joined, Synced)


class Parked:
    """One of them, as its session sees it."""

    __slots__ = ("_answer", "_group_id", "_groups")

    def __init__(
        self, groups: Coordinator, group_id: str, answer: "asyncio.Future[Joined] | asyncio.Future[Synced]"
    ) -> None:
        self._groups = groups
        self._group_id = group_id
        self._answer = answer

    def wake(self) -> None:
        """Have it answered now: its connection goes, or memory is short."""
        self._groups.withdraw(self._group_id, self._answer)


async def wait(session: Session, group_id: str, answer: "asyncio.Future[A]") -> A:
    """The answer when it is there, or what a member can do instead of waiting when its connection goes."""
    if answer.done():
        return answer.result()
    parked = Parked(session.broker.groups, group_id, answer)
    if session.closed:
        parked.wake()
    session.watches.add(parked)
    try:
        return await answer
    finally:
        session.watches.discard(parked)
