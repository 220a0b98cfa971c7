"""Layout `entries`: every record is an entry of the stream, readable and writable by any Redis client."""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import pack, pack_append
from korvet_fast.core.types import Buffer
from korvet_fast.errors import CodecError, KorvetError
from korvet_fast.store.interface import Entry, Form
from korvet_fast.store.redis.group import Group, Word
from korvet_fast.store.redis.layout import EXPANDED, Found
from korvet_fast.store.redis.scripts import GUARD_AND_ADD

_MULTI = pack([["MULTI"]])
_PREFIX = len("$4\r\nXADD\r\n")
_ENTRY = len("*2\r\n")  # what stands before each id in a reply


class Entries:
    """See `Layout`. Offsets within a batch are consecutive, and so are its ids; the guard adds the first record."""

    first_count = 64

    def put(self, group: Group, key: str, form: Form, entries: Sequence[Entry]) -> None:
        """See `Layout.put`."""
        parts = []
        size = number = 0
        first = None if group.entries else ["EVAL", GUARD_AND_ADD, *group.opening]
        for entry in entries:
            packed = _pack(key, form, entry, first)
            parts.append(packed)
            count = entry.last - entry.first + 1
            size += _measure(packed, key, count, first)
            number += count
            first = None
        group.parts += parts
        group.commands += number
        group.last = entries[-1].last
        group.add(entries, size, number)

    def renew(self, group: Group, key: str, form: Form) -> None:
        """See `Layout.renew`."""
        group.parts[0] = _pack(key, form, group.entries[0], ["EVAL", GUARD_AND_ADD, *group.opening])

    def pack(self, group: Group, closing: list[tuple[Word, ...]]) -> tuple[list[Buffer], int]:
        """See `Layout.pack`."""
        return [_MULTI, *group.parts, pack(closing)], group.commands + len(closing) + 1

    def unpack(self, reply: Buffer, form: Form, start: int, max_bytes: int, epoch: int) -> Found:
        """See `Layout.unpack`."""
        data, end, seen, skipped = _native.entries(reply, form.bits, start, max_bytes, form.compression, epoch)
        return Found([data] if data else [], end, seen, skipped)


def _pack(key: str, form: Form, entry: Entry, first: list[Word] | None) -> bytes:
    try:
        return pack_append(key, entry.data, entry.first, form.bits, EXPANDED, first)
    except CodecError as error:
        raise KorvetError("INVALID_RECORD", f"it cannot become entries of a stream: {error}") from None


def _measure(packed: bytes, key: str, count: int, first: list[Word] | None) -> int:
    """What records take at rest, counted as a reply to XRANGE has them: without the words before the ids."""
    before = _PREFIX + _length(key)
    size = len(packed) - count * (before - _ENTRY)
    if first:
        words = packed[1 : packed.index(b"\r")]
        size -= sum(map(_length, first)) - before + len(words) - len(str(int(words) - len(first) + 2))
    return size


def _length(word: Word) -> int:
    """Bytes of a word in a command."""
    size = len(str(word)) if isinstance(word, int) else len(word)
    return size + len(str(size)) + 5
