"""Batches as rows of named columns, one Python value for each cell: what Arrow arrays of the contract would list."""

from collections.abc import Iterator, Sequence
from typing import Any, final

from korvet_fast.errors import CodecError
from korvet_reference.header import HEADER, LAST, Batch, read_batches, record_offset, record_time, sound
from korvet_reference.records import Record, read_payload, read_records
from korvet_reference.varint import Bytes

NAMES = {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"}
FIXED = {"partition": 4, "offset": 8, "timestamp": 8, "timestampType": 4}  # bytes of a cell
ABORT = b"\0\0"  # the type in a control record's key
MOST_BYTES = 1 << 30

Row = dict[str, Any]


@final
class ArrowColumns:
    """Rows, and where reading goes on. Iterating gives each row's cells in the order of the columns, times in µs."""

    def __init__(self, columns: Sequence[str], rows: list[Row], after: int, whole: bool) -> None:
        self._columns = columns
        self._rows = rows
        self._next = after
        self._whole = whole

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return (tuple(row[name] for name in self._columns) for row in self._rows)

    @property
    def next(self) -> int:
        """The offset where reading goes on."""
        return self._next

    @property
    def nbytes(self) -> int:
        """Bytes of the Arrow buffers that hold the same."""
        return _size(self._columns, self._rows)

    @property
    def whole(self) -> bool:
        """False: there is another whole batch in the data."""
        return self._whole


def to_arrow(
    batches: Bytes,
    topic: str,
    partition: int,
    columns: Sequence[str],
    start: int,
    end: int,
    max_rows: int,
    max_bytes: int,
    limit: int,
    aborted: Sequence[tuple[int, int]] = (),
) -> ArrowColumns:
    """The records `start` <= offset < `end`; no further batch is taken after `max_rows` or `max_bytes`.

    Control batches are left out, and those of `aborted` transactions: (producer id, first offset). A last batch that is
    cut off is left. Raises BAD_COLUMNS, as `read_header` but for TRUNCATED, BAD_CRC, UNKNOWN_COMPRESSION,
    CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, BAD_COUNT, BAD_RECORD, BAD_OFFSET, OUT_OF_RANGE, OVERSIZE.
    """
    if len(set(columns)) < len(columns) or not set(columns) <= NAMES:
        raise CodecError("BAD_COLUMNS", "a column is unknown, or wanted twice")
    rows: list[Row] = []
    taken = False
    after = start
    transactions = _Aborted(aborted)
    try:
        for batch, data in read_batches(batches):
            if after >= end or batch.base_offset >= end:
                return ArrowColumns(columns, rows, max(after, end), True)
            left_out = transactions.have(batch, data, limit) or batch.control
            if batch.last_offset < after:
                continue
            if not left_out:
                if taken and (len(rows) >= max_rows or _size(columns, rows) >= min(max_bytes, MOST_BYTES)):
                    return ArrowColumns(columns, rows, after, False)
                rows += [
                    _row(batch, record, topic, partition, columns)
                    for record in _read(batch, data, limit)
                    if after <= record_offset(batch, record.offset_delta) < end
                ]
                taken = True
            after = min(batch.last_offset + 1, LAST, end)
    except CodecError as error:
        if error.code != "TRUNCATED":
            raise
    return ArrowColumns(columns, rows, after, True)


class _Aborted:
    """The aborted transactions of an answer, followed from batch to batch."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self.ahead = sorted((first, producer) for producer, first in transactions)
        self.open: set[int] = set()

    def have(self, batch: Batch, data: memoryview, limit: int) -> bool:
        """Whether the next batch belongs to one of them; a marker may end one."""
        while self.ahead and self.ahead[0][0] <= batch.last_offset:
            self.open.add(self.ahead.pop(0)[1])
        if batch.producer_id not in self.open:
            return False
        if batch.control:
            record = next(_read(batch, data, limit), None)
            if record is not None:
                if record.key is None or len(record.key) < 4:
                    raise CodecError("BAD_RECORD", "a control record's key has no type")
                if record.key[2:4] == ABORT:
                    self.open.remove(batch.producer_id)
        return batch.transactional


def _read(batch: Batch, data: memoryview, limit: int) -> Iterator[Record]:
    if not sound(data):
        raise CodecError("BAD_CRC", f"the batch at offset {batch.base_offset} fails its checksum")
    try:
        yield from read_records(batch.count, read_payload(batch.compression, data[HEADER.size :], limit))
    except CodecError as error:
        raise CodecError(error.code, f"the batch at offset {batch.base_offset}: {error}") from error


def _row(batch: Batch, record: Record, topic: str, partition: int, columns: Sequence[str]) -> Row:
    row: Row = {
        "key": record.key,
        "value": record.value,
        "topic": topic,
        "partition": partition,
        "offset": record_offset(batch, record.offset_delta),
        "timestampType": int(batch.log_append_time),
        "headers": [(key.decode("utf-8", "replace"), value) for key, value in record.headers] or None,
    }
    if "timestamp" in columns:
        row["timestamp"] = 1000 * record_time(batch, record.timestamp_delta)
        if not -LAST - 1 <= row["timestamp"] <= LAST:
            raise CodecError("OUT_OF_RANGE", "a time does not fit 64 bits of µs")
    return row


def _size(columns: Sequence[str], rows: list[Row]) -> int:
    """Bytes of Arrow buffers: n + 1 offsets of 32 bits for what varies in length, and a bitmap if there are nulls."""
    size = 0
    for name in columns:
        cells = [row[name] for row in rows]
        if name in FIXED:
            size += FIXED[name] * len(cells)
        elif name == "headers":
            headers = [header for cell in cells for header in cell or ()]
            size += _cells([cell and b"" for cell in cells])
            size += _cells([key.encode() for key, _ in headers]) + _cells([value for _, value in headers])
        else:
            size += _cells([cell.encode() for cell in cells] if name == "topic" else cells)
    return size


def _cells(cells: Sequence[bytes | None]) -> int:
    bitmap = (len(cells) + 7) // 8 if None in cells else 0
    return 4 * (len(cells) + 1) + sum(len(cell or b"") for cell in cells) + bitmap
