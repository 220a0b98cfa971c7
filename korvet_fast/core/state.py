"""What a partition must know beyond its log's bounds: producers and leader epochs, with a copy in the registry.

It never disagrees with the data: opening takes the saved copy, takes out of it what the log has lost since, and learns
from the log what was appended after it.
"""

import struct

from korvet_fast import _native
from korvet_fast.core.epochs import Epochs
from korvet_fast.core.producers import Producers
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import ABSENT, Store

_HEAD = struct.Struct("<iqi")  # layout version, end, number of epochs
_LAYOUT = 1
_PAGE = 1 << 20


class State:
    """`epochs` and `producers` of one log. `saved_end`: the saved copy knows all records below it, and no others."""

    __slots__ = ("_log", "_saved", "epochs", "producers", "saved_end")

    def __init__(self, log: str) -> None:
        self._log = log
        self._saved: bytes | None = ABSENT
        self.saved_end = 0
        self.epochs = Epochs()
        self.producers = Producers()

    @property
    def key(self) -> str:
        return f"state/{self._log}"

    def pack(self, end: int) -> bytes:
        """The state after all records below `end`, as bytes."""
        entries = self.epochs.entries
        flat = [number for entry in entries for number in entry]
        epochs = struct.pack(f"<{len(flat)}q", *flat)
        return _HEAD.pack(_LAYOUT, end, len(entries)) + epochs + self.producers.pack()

    def load(self, saved: bytes | None, seen: float) -> None:
        """Take the registry's copy (None if it has none).

        `seen`: the monotonic time in seconds at which its producers count as heard of.
        """
        self._saved = saved
        self.saved_end = 0
        self.epochs, self.producers = Epochs(), Producers()
        if saved is None:
            return
        layout, end, many = _HEAD.unpack_from(saved)
        if layout == _LAYOUT:
            flat = struct.unpack_from(f"<{2 * many}q", saved, _HEAD.size)
            self.epochs = Epochs(list(zip(flat[::2], flat[1::2], strict=True)))
            self.producers = Producers.unpack(memoryview(saved)[_HEAD.size + 16 * many :], seen)
            self.saved_end = end

    def count_producers(self, headers: bytes, seen: float) -> None:
        """Know those producers whose last batches have these heads, and no others."""
        self.producers = Producers()
        for batch in _native.headers(headers, False):
            if batch.numbers is not None:
                self.producers.add(batch.numbers, batch.base_offset, batch.max_timestamp, seen)

    async def catch_up(self, store: Store, start: int, end: int, seen: float) -> int:
        """Take in what the log holds from `start` to `end`; how many bytes that was. Raises `StoreError`."""
        offset, size = start, 0
        while offset < end:
            page = await store.read(self._log, offset, _PAGE, end)
            if not page.data:
                raise StoreError(f"{self._log}: nothing can be read at offset {offset}, below the end {end}")
            for part in page.data:
                size += len(part)
                for batch in _native.headers(part, False):
                    self.epochs.add(batch.leader_epoch, batch.base_offset)
                    if batch.numbers is not None:
                        self.producers.add(batch.numbers, batch.base_offset, batch.max_timestamp, seen)
            offset = page.next
        return size

    async def save(self, store: Store, packed: bytes, end: int) -> None:
        """Put what `pack(end)` gave into the registry. Everything below `end` must be durable."""
        if await store.save(self.key, packed, self._saved):
            self._saved, self.saved_end = packed, end
        elif store.shared:
            # Another broker leads by now, and this copy is of no use; or it is our own, whose answer was lost.
            self._saved = await store.load(self.key)
        else:
            raise StoreError(f"{self.key} was changed by another writer")

    async def drop(self, store: Store) -> None:
        """Take the copy out of the registry, whoever wrote it."""
        saved = await store.load(self.key)
        if saved is not ABSENT:
            await store.save(self.key, None, saved)
            self._saved = ABSENT
