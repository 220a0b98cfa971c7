"""The one door through which groups are written: every change is compared and set, and there is no other way."""

from collections.abc import Mapping, Sequence

from korvet_fast.store.interface import Change, Store


class Moved(Exception):
    """Somebody else has written to the group, or taken its slot: its coordinator is not here any more."""


class Records:
    """The keys of one group: what stands under them, as far as this coordinator knows."""

    __slots__ = ("_fence", "_store", "known")

    def __init__(self, store: Store, fence: Sequence[Change], known: dict[str, bytes]) -> None:
        """`fence`: what everything is compared with. It stays what it was when `known` was read."""
        self._store = store
        self._fence = fence
        self.known = known

    async def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Set keys, or (None) remove them, in one step; durable on return. No two writes of one key at a time.

        Raises `Moved`, or `StoreError` with the outcome unknown: then nothing here is known of the group any more.
        """
        if not changes:
            return
        first, *others = [Change(key, value, self.known.get(key)) for key, value in changes.items()]
        if not await self._store.save(*first, *others, *self._fence):
            raise Moved(f"another program has written {' or '.join(changes)}, or taken over its slot")
        for key, value in changes.items():
            if value is None:
                self.known.pop(key, None)
            else:
                self.known[key] = value
