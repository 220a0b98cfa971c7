"""Layout `batches`: a record batch is an entry of the stream, untouched, at the id of its base offset."""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import pack_parts
from korvet_fast.core.types import Buffer
from korvet_fast.store.interface import Entry, Form
from korvet_fast.store.redis.group import Group, Word
from korvet_fast.store.redis.ids import pack_id
from korvet_fast.store.redis.layout import Found
from korvet_fast.store.redis.scripts import GUARD


class Batches:
    """See `Layout`. Offsets are dense, from 1 on: Redis has no id 0-0."""

    first_count = 4

    def put(self, group: Group, key: str, form: Form, entries: Sequence[Entry]) -> None:
        """See `Layout.put`."""
        size = 0
        for data, first, _, _ in entries:
            group.words.append(("XADD", key, pack_id(first, form.bits), "batch", data))
            size += len(data)
        group.last = entries[-1].first
        group.add(entries, size, len(entries))

    def renew(self, group: Group, key: str, form: Form) -> None:
        """See `Layout.renew`: it is used when the group is packed."""

    def pack(self, group: Group, closing: list[tuple[Word, ...]]) -> tuple[list[Buffer], int]:
        """See `Layout.pack`; the batches are parts of their own, the very objects."""
        commands = [("MULTI",), ("EVAL", GUARD, *group.opening), *group.words, *closing]
        return pack_parts(commands), len(commands)

    def unpack(self, reply: Buffer, form: Form, start: int, max_bytes: int, epoch: int) -> Found:
        """See `Layout.unpack`; the batches are views of the reply."""
        data, end, seen, skipped = _native.blobs(reply, form.bits, start, max_bytes)
        return Found([*data], end, seen, skipped)
