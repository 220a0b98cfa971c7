"""The entries of a reply to XRANGE: arrays of two, an id and an array of fields' names and values in turn."""

import re
from collections.abc import Iterator

from korvet_fast.errors import CodecError
from korvet_reference.header import LAST
from korvet_reference.varint import Bytes

ANNOUNCEMENT = re.compile(rb"([$*])([0-9]{1,9})\r\n")
ID = re.compile(rb"([0-9]+)-([0-9]+)")
HIGHEST = (1 << 64) - 1  # of each number of an id

Fields = list[tuple[bytes, bytes]]


def read_entries(reply: Bytes) -> Iterator[tuple[int, int, Fields, int]]:
    """Time and sequence of each entry's id, its fields, and the position behind it.

    Raises BAD_RESP for anything that is not an array of entries with rising ids, once it is met.
    """
    data = bytes(reply)
    count, at = _announced(data, 0, b"*")
    last = (-1, -1)
    for _ in range(count):
        two, at = _announced(data, at, b"*")
        text, at = _bulk(data, at)
        found = ID.fullmatch(text)
        entry_id = (int(found[1]), int(found[2])) if found else (-1, -1)
        if two != 2 or not last < entry_id or max(entry_id) > HIGHEST:
            raise CodecError("BAD_RESP", "the reply is no array of entries with rising ids")
        last = entry_id
        words, at = _announced(data, at, b"*")
        if words % 2:
            raise CodecError("BAD_RESP", "a field without a value")
        fields: Fields = []
        for _ in range(words // 2):
            name, at = _bulk(data, at)
            value, at = _bulk(data, at)
            fields.append((name, value))
        yield entry_id[0], entry_id[1], fields, at
    if at < len(data):
        raise CodecError("BAD_RESP", "bytes behind the last entry")


def to_offset(time: int, sequence: int, bits: int) -> int | None:
    """The offset that has this id, if there is one."""
    return time << bits | sequence if time <= LAST >> bits and sequence < 1 << bits else None


def offset_after(time: int, bits: int) -> int:
    """The first offset behind an id of this time that is no offset."""
    return min((time + 1) << bits, LAST)


def to_base_offset(time: int, sequence: int, bits: int) -> int | None:
    """The base offset of a batch that has this id, if there is one; with 0 `bits` the id is `<base offset>-1`."""
    if bits:
        return to_offset(time, sequence, bits)
    return time if sequence == 1 and time <= LAST else None


def base_offset_after(time: int, sequence: int, bits: int) -> int:
    """The first base offset behind an id that is none."""
    return offset_after(time, bits) if bits else min(time + bool(sequence), LAST)


def _announced(data: bytes, at: int, kind: bytes) -> tuple[int, int]:
    """The number in the line at a position, and the position behind it."""
    found = ANNOUNCEMENT.match(data, at)
    if found is None or found[1] != kind:
        raise CodecError("BAD_RESP", "the reply is no array of entries")
    return int(found[2]), found.end()


def _bulk(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _announced(data, at, b"$")
    end = at + size
    if data[end : end + 2] != b"\r\n":
        raise CodecError("BAD_RESP", "a bulk string does not end where it should")
    return data[at:end], end + 2
