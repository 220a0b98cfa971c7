"""The partitions whose leader has to ask the store where the log ends."""

import asyncio
from itertools import islice
from typing import Protocol

_AT_ONCE = 64  # logs that the store is asked for side by side


class Recoverable(Protocol):
    """A partition's leader."""

    def recover(self) -> "asyncio.Task[None]":
        """Ask the store for the log's end, unless that is under way."""


class RecoveryQueue:
    """`gate`: a task that finds out what this broker still leads. No log is asked for before it has ended."""

    def __init__(self) -> None:
        self.gate: asyncio.Task[None] | None = None
        self._uncertain: set[Recoverable] = set()

    def __contains__(self, leader: Recoverable) -> bool:
        return leader in self._uncertain

    def add(self, leader: Recoverable) -> None:
        """Add a leader that does not know where its log ends."""
        self._uncertain.add(leader)

    def discard(self, leader: Recoverable) -> None:
        """Remove a leader that knows where its log ends, or leads no more."""
        self._uncertain.discard(leader)

    async def pass_gate(self) -> None:
        """Wait until it is known what this broker leads in the store's present history."""
        while self.gate is not None and not self.gate.done():
            await asyncio.wait([self.gate])

    async def recover_all(self) -> None:
        """Have every leader in the queue ask the store, a few at a time."""
        rest = iter(list(self._uncertain))
        while some := list(islice(rest, _AT_ONCE)):
            await asyncio.wait([leader.recover() for leader in some])
