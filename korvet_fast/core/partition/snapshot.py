"""A partition's producers, leader epochs and perhaps segments, with a copy in the registry.

The copy never disagrees with the log: a broker that acquires the log loads the copy, removes the batches that the log
has lost since, and reads from the log the batches that were appended since.
"""

import struct

from korvet_fast import _native
from korvet_fast.core.partition.leader_epochs import LeaderEpochCache
from korvet_fast.core.partition.legacy_segments import LegacySegments
from korvet_fast.core.partition.producer_state import ProducerLimit, ProducerState
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import OpenedLog, Store
from korvet_fast.store.types import ABSENT

_HEAD = struct.Struct("<iqi")  # layout version, end, number of epochs
# Earlier versions know the first one, and read the log anew where they find another. The last one has segments too.
_PLAIN, _LAYOUT, _WITH_SEGMENTS = 1, 2, 3
_PAGE = 1 << 20


class PartitionSnapshot:
    """`epochs` and `producers` of one log, and its `segments` in the format `legacy`.

    `saved_end`: the saved copy knows all records below it, and no others.
    """

    __slots__ = ("_log", "_saved", "epochs", "producers", "saved_end", "segments")

    def __init__(self, log: str, limit: ProducerLimit | None = None, segments: LegacySegments | None = None) -> None:
        self._log = log
        self._saved: bytes | None = ABSENT
        self.saved_end = 0
        self.epochs = LeaderEpochCache()
        self.producers = ProducerState(limit, log)
        self.segments = segments

    @property
    def key(self) -> str:
        return f"state/{self._log}"

    def pack(self, end: int) -> bytes:
        """The state after all records below `end`, as bytes."""
        entries = self.epochs.entries
        flat = [number for entry in entries for number in entry]
        epochs = struct.pack(f"<{len(flat)}q", *flat)
        layout = _PLAIN if self.producers.is_plain else _LAYOUT
        if self.segments is not None:
            layout, epochs = _WITH_SEGMENTS, epochs + self.segments.pack()
        return _HEAD.pack(layout, end, len(entries)) + epochs + self.producers.pack()

    def load(self, saved: bytes | None, seen: float) -> None:
        """Take the registry's copy (None if it has none).

        `seen`: the monotonic time in seconds at which its producers count as heard of.
        """
        self._saved = saved
        self.saved_end = 0
        self.epochs.replace(())
        self.producers.clear()
        if self.segments is not None:
            self.segments.clear()
        if saved is None:
            return
        layout, end, many = _HEAD.unpack_from(saved)
        if layout in ((_PLAIN, _LAYOUT) if self.segments is None else (_WITH_SEGMENTS,)):
            flat = struct.unpack_from(f"<{2 * many}q", saved, _HEAD.size)
            self.epochs.replace(zip(flat[::2], flat[1::2], strict=True))
            rest = memoryview(saved)[_HEAD.size + 16 * many :]
            self.producers.load(rest if self.segments is None else self.segments.load(rest), seen)
            self.saved_end = end

    def replace_producers(self, headers: bytes, seen: float) -> None:
        """Replace all producers by those that wrote the batches with these headers (61 bytes each)."""
        self.producers.clear()
        for batch in _native.batch_headers(headers, False):
            if batch.producer_sequence is not None:
                self.producers.add(batch.producer_sequence, batch.base_offset, batch.max_timestamp, seen)

    async def catch_up(self, log: OpenedLog, start: int, end: int, seen: float) -> int:
        """Add producers and epochs of the batches from `start` to `end`; the bytes read. Raises `StoreError`."""
        offset, size = start, 0
        while offset < end:
            page = await log.read(offset, _PAGE, end, copy=True)
            if not page.data:
                raise StoreError(f"{self._log}: nothing can be read at offset {offset}, below the end {end}")
            for part in page.data:
                size += len(part)
                for batch in _native.batch_headers(part, False):
                    self.epochs.add(batch.leader_epoch, batch.base_offset)
                    if self.segments is not None:
                        self.segments.replay(batch.base_offset, batch.last_offset + 1, batch.max_timestamp)
                    if batch.producer_sequence is not None:
                        self.producers.add(batch.producer_sequence, batch.base_offset, batch.max_timestamp, seen)
            offset = page.next
        return size

    async def save(self, store: Store, packed: bytes, end: int) -> None:
        """Put what `pack(end)` gave into the registry. Everything below `end` must be durable."""
        if await store.save(self.key, packed, self._saved):
            self._saved, self.saved_end = packed, end
        elif store.shared is not None:
            # Another broker leads by now, and this copy is of no use; or this broker wrote it, and the answer was lost.
            self._saved = await store.load(self.key)
        else:
            raise StoreError(f"{self.key} was changed by another writer")

    async def drop(self, store: Store) -> None:
        """Remove the copy from the registry, even if another broker wrote it."""
        saved = await store.load(self.key)
        if saved is not ABSENT:
            await store.save(self.key, None, saved)
            self._saved = ABSENT
