"""Writes the documents of groups. Every write is a compare-and-set."""

from collections.abc import Mapping, Sequence

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.errors import Errors, StoreError
from korvet_fast.store.interface import Store
from korvet_fast.store.types import CompareAndSet


class CoordinatorFenced(Exception):
    """Another broker has written to the group, or taken over its coordinator partition."""


def error_of(failure: CoordinatorFenced | StoreError) -> Errors:
    """What members are told of a write that failed."""
    return Errors.NOT_COORDINATOR if isinstance(failure, CoordinatorFenced) else Errors.COORDINATOR_NOT_AVAILABLE


class GroupStore:
    """The keys of one group. `known`: their values, as far as this coordinator knows."""

    __slots__ = ("_ownership", "_store", "known")

    def __init__(self, store: Store, ownership: Sequence[CompareAndSet], known: dict[str, bytes]) -> None:
        """`ownership`: what each write is compared with, as of when `known` was read."""
        self._store = store
        self._ownership = ownership
        self.known = known

    async def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Set keys, or (None) remove them, in one step; durable on return. No two writes of one key at a time.

        Raises `CoordinatorFenced`, or `StoreError` with the outcome unknown. After that `known` may be wrong.
        """
        if not changes:
            return
        pace, compared = BackgroundPace(), []
        for key, value in changes.items():
            compared.append(CompareAndSet(key, value, self.known.get(key)))
            if pace.due():
                await pace.turn()
        first, *others = compared
        if not await self._store.save(*first, *others, *self._ownership):
            names = " or ".join(changes)
            raise CoordinatorFenced(f"another program has written {names}, or taken over its coordinator partition")
        for key, value in changes.items():
            if value is None:
                self.known.pop(key, None)
            else:
                self.known[key] = value
