"""Changes of keys as record batches: how a log keeps the values of a `KeyStore` (a leaf)."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate

from korvet_fast._native import Column, build_batch, to_columns
from korvet_fast.errors import CodecError
from korvet_fast.types import Buffer

_LIMIT = 1 << 30  # bytes that one page may unpack to; these batches are not compressed

KeyChange = tuple[str, bytes | None]  # a key, and its value from now on; None: the key is gone


def pack_changes(changes: Sequence[KeyChange], offset: int) -> bytearray:
    """One batch with a record for each change, at `offset`; its leader epoch is -1."""
    keys = [key.encode() for key, _ in changes]
    values = [value or b"" for _, value in changes]
    columns_of = {
        "timestamp": array("q", bytes(8 * len(changes))),
        "key_offsets": array("i", accumulate(map(len, keys), initial=0)),
        "key": b"".join(keys),
        "key_valid": b"\1" * len(changes),
        "value_offsets": array("i", accumulate(map(len, values), initial=0)),
        "value": b"".join(values),
        "value_valid": bytes(value is not None for _, value in changes),
    }
    return build_batch(columns_of, 0, offset, -1, -1, -1)  # type: ignore[arg-type]  # arrays are buffers, from 3.12 on by name


def unpack_changes(batches: Buffer) -> Iterator[KeyChange]:
    """Read the changes that `pack_changes` packed into whole batches, in order. Raises `CodecError`."""
    columns = to_columns(batches, _LIMIT)
    for key, value in zip(_strings(columns, "key"), _strings(columns, "value"), strict=True):
        if key is None:
            raise CodecError("BAD_RECORD", "a change of no key")
        try:
            name = key.decode()
        except UnicodeDecodeError as error:
            raise CodecError("BAD_UTF8", f"the key of a change: {error}") from None
        yield name, value


def _strings(columns: dict[str, Column], name: str) -> Iterator[bytes | None]:
    data = bytes(memoryview(columns[name]))
    ends = memoryview(columns[f"{name}_offsets"])
    valid = memoryview(columns[f"{name}_valid"])
    for number, there in enumerate(valid):
        yield data[ends[number] : ends[number + 1]] if there else None
