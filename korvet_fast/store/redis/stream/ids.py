"""Offsets as the ids of stream entries, and back.

With `bits`, an offset is (ms << bits) | sequence and an id is `ms-sequence`. Other programs may have used sequences
that do not fit the bits: such an entry has no offset of its own; it counts as lying just below the next millisecond's
first.

Without (0, whole batches only) an id is `<offset>-1`, so that offset 0 has one: Redis has no id 0-0.
"""

LAST = (1 << 63) - 1  # the largest offset there is
_SEQUENCE = 1  # the sequence of all ids without bits


def pack_id(offset: int, bits: int) -> str:
    """The id at an offset."""
    if not bits:
        return f"{offset}-{_SEQUENCE}"
    return f"{offset >> bits}-{offset & ((1 << bits) - 1)}"


def find_offset(entry: bytes, bits: int) -> int:
    """The first offset at or above an id."""
    ms, sequence = map(int, entry.split(b"-"))
    if not bits:
        return min(ms + (sequence > _SEQUENCE), LAST)
    return min((ms + 1) << bits if sequence >> bits else (ms << bits) | sequence, LAST)


def find_end(entry: bytes, bits: int) -> int:
    """The offset after an id; 0 for 0-0, the last id of a stream that nothing was ever put into."""
    ms, sequence = map(int, entry.split(b"-"))
    if not bits:
        return min(ms + (sequence >= _SEQUENCE), LAST)
    if not ms and not sequence:
        return 0
    return min((ms + 1) << bits if sequence >> bits else ((ms << bits) | sequence) + 1, LAST)
