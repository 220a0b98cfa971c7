"""Record batches for tests, made by the codec: what a producer would send."""

from array import array
from collections.abc import Sequence

from korvet_fast import _native

NOW = 1_700_000_000_000  # ms; a time for records that need one


def make_batch(
    values: Sequence[bytes] = (b"value",),
    *,
    times: Sequence[int] | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    compression: int = 0,
    base_offset: int = 0,
) -> bytearray:
    """One v2 batch of these values, keys null. `producer`: id, epoch, first sequence. `times` in ms, default `NOW`."""
    count = len(values)
    ends = array("i", [0])
    for value in values:
        ends.append(ends[-1] + len(value))
    columns = {
        "timestamp": array("q", times if times is not None else [NOW] * count),
        "key_offsets": array("i", [0] * (count + 1)),
        "key": b"",
        "key_valid": bytes(count),
        "value_offsets": ends,
        "value": b"".join(values),
        "value_valid": b"\x01" * count,
    }
    buffers = {name: memoryview(column) for name, column in columns.items()}
    return _native.build_batch(buffers, compression, base_offset, *producer)


def read_rows(data: bytes | bytearray | memoryview) -> list[tuple[int, bytes]]:
    """Offset and value of every record in these batches, in order."""
    columns = _native.to_columns(data, 1 << 30)
    ends, value = memoryview(columns["value_offsets"]), memoryview(columns["value"])
    return [(at, bytes(value[ends[n] : ends[n + 1]])) for n, at in enumerate(memoryview(columns["offset"]))]


def read_values(data: bytes | bytearray | memoryview) -> list[bytes]:
    """The values of all records in these batches, in order."""
    return [value for _, value in read_rows(data)]
