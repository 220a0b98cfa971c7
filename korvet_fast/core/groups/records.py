"""The one door through which groups are written: every change is compared and set, and there is no other way.

With several brokers over one store, this is where a slot's owner and its fencing epoch belong into the comparison.
"""

from collections.abc import Mapping

from korvet_fast.core.eager import together
from korvet_fast.store.interface import Store


class Moved(Exception):
    """Somebody else has written to the group: its coordinator is not here any more."""


class Records:
    """The keys of one group: what stands under them, as far as this coordinator knows."""

    __slots__ = ("_store", "known")

    def __init__(self, store: Store, known: dict[str, bytes]) -> None:
        self._store = store
        self.known = known

    async def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Set keys, or (None) remove them; durable on return. No two writes of one key at a time.

        Raises `Moved`, or `StoreError` with the outcome unknown: then nothing here is known of the group any more.
        """
        saves = [self._store.save(key, value, self.known.get(key)) for key, value in changes.items()]
        # All begin before the first ends, so that the store can make them durable together.
        for (key, value), done in zip(changes.items(), await together(saves), strict=True):
            if not done:
                raise Moved(f"another program has written {key}")
            if value is None:
                self.known.pop(key, None)
            else:
                self.known[key] = value
