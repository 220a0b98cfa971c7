"""Layout `entries`: every record is an entry of the stream, readable and writable by any Redis client."""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import pack_append
from korvet_fast.core.types import Buffer
from korvet_fast.errors import CodecError, KorvetError
from korvet_fast.store.interface import Entry, Form
from korvet_fast.store.redis.layout import EXPANDED, Found, Packed, Word
from korvet_fast.store.redis.scripts import GUARD_AND_ADD

_PREFIX = len("$4\r\nXADD\r\n")
_ENTRY = len("*2\r\n")  # what stands before each id in a reply


class Entries:
    """See `Layout`. Offsets within a batch are consecutive, and so are its ids."""

    first_count = 64

    def pack(self, key: str, form: Form, entry: Entry, opening: Sequence[Word]) -> Packed:
        """See `Layout.pack`: the guard puts in the first record itself."""
        first = ["EVAL", GUARD_AND_ADD, *opening] if opening else None
        try:
            packed = pack_append(key, entry.data, entry.first, form.bits, EXPANDED, first)
        except CodecError as error:
            raise KorvetError("INVALID_RECORD", f"it cannot become entries of a stream: {error}") from None
        count = entry.last - entry.first + 1
        # What they take at rest is counted as a reply to XRANGE has them: without the words before the ids.
        before = _PREFIX + _length(key)
        opened = 0
        if first:
            words = packed[1 : packed.index(b"\r")]
            opened = sum(map(_length, first)) - before + len(words) - len(str(int(words) - len(first) + 2))
        return Packed([packed], count, count, len(packed) - opened - count * (before - _ENTRY))

    def find_last(self, entry: Entry) -> int:
        """See `Layout.find_last`."""
        return entry.last

    def unpack(self, reply: Buffer, form: Form, start: int, max_bytes: int, epoch: int) -> Found:
        """See `Layout.unpack`."""
        data, end, seen, skipped = _native.entries(reply, form.bits, start, max_bytes, form.compression, epoch)
        return Found([data] if data else [], end, seen, skipped)


def _length(word: Word) -> int:
    """Bytes of a word in a command."""
    size = len(str(word)) if isinstance(word, int) else len(word)
    return size + len(str(size)) + 5
