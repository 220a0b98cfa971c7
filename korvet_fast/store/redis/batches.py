"""Layout `batches`: a record batch is an entry of the stream, untouched, at the id of its base offset."""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import pack_parts
from korvet_fast.core.types import Buffer
from korvet_fast.store.interface import Entry, Form
from korvet_fast.store.redis.ids import pack_id
from korvet_fast.store.redis.layout import Found, Packed, Word
from korvet_fast.store.redis.scripts import GUARD


class Batches:
    """See `Layout`. Offsets are dense, from 1 on: Redis has no id 0-0."""

    first_count = 4

    def pack(self, key: str, form: Form, entry: Entry, opening: Sequence[Word]) -> Packed:
        """See `Layout.pack`: the guard is a command of its own."""
        commands: list[Sequence[Word]] = [["EVAL", GUARD, *opening]] if opening else []
        commands.append(["XADD", key, pack_id(entry.first, form.bits), "batch", entry.data])
        return Packed(pack_parts(commands), len(commands), 1, len(entry.data))

    def find_last(self, entry: Entry) -> int:
        """See `Layout.find_last`: the batch is one entry."""
        return entry.first

    def unpack(self, reply: Buffer, form: Form, start: int, max_bytes: int, epoch: int) -> Found:
        """See `Layout.unpack`; the batches are views of the reply."""
        data, end, seen, skipped = _native.blobs(reply, form.bits, start, max_bytes)
        return Found([*data], end, seen, skipped)
