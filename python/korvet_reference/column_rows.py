"""A producer's columns, cut into runs of rows that go to one partition each, and batches of them."""

from array import array
from collections.abc import Sequence
from typing import final

from korvet_fast.errors import CodecError
from korvet_reference.columns import Column
from korvet_reference.compression import check_known
from korvet_reference.header import TRANSACTIONAL, new_batch
from korvet_reference.records import Record, write_record
from korvet_reference.rows import partition_for
from korvet_reference.varint import Bytes

RECORD_MOST = 36  # bytes of a record beside key and value: attributes, time, offset, and all lengths

Cells = Sequence[bytes | None]

SMALL = 16 * 1024  # bytes of a batch that is handed over as a copy


@final
class ColumnRows:
    """A column of values with one of keys or None."""

    def __init__(self, keys: Cells | None, values: Cells) -> None:
        """Raises TypeError for anything but bytes, BAD_VALUE for columns of different lengths."""
        self._values = [_read("values", row, cell) for row, cell in enumerate(values)]
        self._keys = [_read("keys", row, cell) for row, cell in enumerate(keys or [None] * len(self._values))]
        if keys is not None and len(keys) != len(self._values):
            raise CodecError("BAD_VALUE", "there is not one key for each value")

    def __len__(self) -> int:
        return len(self._values)

    def choose(self, partitions: int) -> Column:
        """The partition of each key as Java's client chooses it, -1 for a null one. Raises BAD_VALUE."""
        if partitions <= 0:
            raise CodecError("BAD_VALUE", "there are no partitions")
        return Column("i", [-1 if key is None else partition_for(key, partitions) for key in self._keys])

    def runs(self, chosen: Bytes | None, most_bytes: int, most_rows: int) -> list["RowRun"]:
        """Runs of one partition: full ones as they fill, then the rest by their first row. Raises BAD_COLUMNS."""
        partitions = [-1] * len(self) if chosen is None else list(memoryview(chosen).cast("B").cast("i"))
        if len(partitions) != len(self):
            raise CodecError("BAD_COLUMNS", "there is not one partition for each row")
        found: list[RowRun] = []
        waiting: dict[int, list[int]] = {}
        for row, partition in enumerate(partitions):
            before = waiting.setdefault(partition, [])
            if before and (self._run([*before, row]).size > most_bytes or len(before) >= most_rows):
                found.append(self._run(before, partition))
                waiting[partition] = []
            waiting[partition].append(row)
        rest = sorted((rows, partition) for partition, rows in waiting.items())
        return found + [self._run(rows, partition) for rows, partition in rest]

    def _run(self, rows: list[int], partition: int = -1) -> "RowRun":
        return RowRun(rows, [self._keys[row] for row in rows], [self._values[row] for row in rows], partition)


@final
class RowRun:
    """Rows that go to one partition, in order."""

    def __init__(self, rows: list[int], keys: Cells, values: Cells, partition: int) -> None:
        self._rows = rows
        self._keys = keys
        self._values = values
        self._partition = partition

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def partition(self) -> int:
        """Where they go; -1: nobody chose."""
        return self._partition

    @property
    def size(self) -> int:
        """Bytes of their records, at most."""
        return sum(len(cell or b"") for cell in (*self._keys, *self._values)) + RECORD_MOST * len(self)

    def rows(self) -> list[int]:
        """Their numbers."""
        return list(self._rows)

    def keys(self) -> list[bytes | None]:
        """Their keys."""
        return list(self._keys)

    def values(self) -> list[bytes | None]:
        """Their values."""
        return list(self._values)

    def halves(self) -> tuple["RowRun", "RowRun"]:
        """The first and the second half."""
        half = len(self) // 2
        first, second = slice(None, half), slice(half, None)
        return self._part(first), self._part(second)

    def build(
        self, timestamp: int, compression: int, producer_id: int, producer_epoch: int, base_sequence: int
    ) -> bytes | memoryview:
        """One batch of them. Raises as `build_rows`."""
        times = array("q", [timestamp] * len(self))
        producer = (producer_id, producer_epoch, base_sequence)
        return build_rows(self._keys, self._values, memoryview(times), compression, *producer)

    def _part(self, part: slice) -> "RowRun":
        return RowRun(self._rows[part], self._keys[part], self._values[part], self._partition)


def build_rows(
    keys: Cells | None,
    values: Cells,
    timestamps: Bytes,
    compression: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes | memoryview:
    """One batch of columns; a view of it beyond `SMALL` bytes.

    Raises UNKNOWN_COMPRESSION, BAD_COLUMNS (times), BAD_COUNT, OUT_OF_RANGE, OVERSIZE."""
    (run,) = ColumnRows(keys, values).runs(None, 1 << 62, 1 << 62) or [RowRun([], [], [], -1)]
    check_known(compression & ~TRANSACTIONAL)
    view = memoryview(timestamps).cast("B")
    if len(view) != 8 * len(values):
        raise CodecError("BAD_COLUMNS", "there is not one time for each value")
    times = list(view.cast("q"))
    payload = bytearray()
    for place, (time, key, value) in enumerate(zip(times, run.keys(), run.values(), strict=True)):
        if not -(1 << 63) <= time - times[0] < 1 << 63:
            raise CodecError("OUT_OF_RANGE", "the times of a batch are too far apart")
        payload += write_record(Record(time - times[0], place, key, value, []))
    producer = (producer_id, producer_epoch, base_sequence)
    batch = bytes(new_batch(bytes(payload), compression, times, 0, len(times) - 1, producer))
    return batch if len(batch) <= SMALL else memoryview(batch)


def row_places(ended: list[tuple[RowRun, int, int]], count: int) -> tuple[list[int], list[int]]:
    """Partitions and offsets of `count` rows. `ended`: run, partition, first offset or -1. Raises BAD_VALUE."""
    partitions, offsets = [-1] * count, [-1] * count
    for run, partition, first in ended:
        for at, row in enumerate(run.rows()):
            if row >= count:
                raise CodecError("BAD_VALUE", f"row {row} of {count}")
            partitions[row] = partition
            offsets[row] = first + at if first >= 0 else offsets[row]
    return partitions, offsets


def _read(name: str, row: int, cell: bytes | bytearray | memoryview | None) -> bytes | None:
    if cell is not None and not isinstance(cell, bytes | bytearray | memoryview):
        raise TypeError(f"row {row} of {name} is {type(cell).__name__}; send_many takes bytes or None")
    return None if cell is None else bytes(cell)
