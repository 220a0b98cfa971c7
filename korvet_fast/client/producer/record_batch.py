"""A record batch as it is sent, and sent again: built once, natively, and never changed."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Protocol

from korvet_fast._native import build_batch, build_rows
from korvet_fast.client.producer.message import ANY_PARTITION, DeliveryFailed, Headers, Outcome, QueuedRecords
from korvet_fast.client.producer.retry_handler import Answer, RowAnswer

_DELIVERED = Outcome.DELIVERED  # looked up once: the class of an enumeration is slow to ask


class Stages(Protocol):
    """The other stages, as far as a batch uses them."""

    @property
    def hurried(self) -> bool:
        """Whether no batch waits for more messages: at a flush, at close, and when memory is short."""

    def divide(self, records: QueuedRecords, parts: Iterable[QueuedRecords]) -> None:
        """Records go on in parts."""

    def finish(self, records: QueuedRecords, outcome: Outcome, error: DeliveryFailed | None) -> None:
        """A message has ended."""


class ProducerBatch:
    """Records of one partition with their bytes (Java's ProducerBatch).

    `count`: of its messages. `sequence`: of the first record, -1 without idempotence. `attempts`: how often it was
    handed to a connection. `uncertain`: an attempt ended without an answer that says whether the batch was stored.
    """

    __slots__ = (
        "attempts",
        "count",
        "data",
        "failure",
        "failures",
        "in_flight",
        "records",
        "rows",
        "sequence",
        "stored",
        "uncertain",
    )

    def __init__(self, records: Sequence[QueuedRecords], count: int, data: bytes | memoryview, sequence: int) -> None:
        self.records = records
        self.count = count
        self.data = data
        self.sequence = sequence
        self.attempts = 0
        self.failures = 0  # failures of its own, not because an earlier batch failed
        self.in_flight = False
        self.uncertain = False
        self.failure: Answer | None = None  # why its last attempt failed, while others are still on their way
        self.stored: tuple[int, int] | None = None  # base offset and time of append; known before its turn to end
        self.rows: Sequence[RowAnswer] = ()  # where each record has an answer of its own

    @property
    def deadline(self) -> float:
        """The time when the first of the batch's records expires."""
        return self.records[0].deadline

    def end(self, stages: Stages, error: DeliveryFailed | None) -> None:
        """End its records: delivered if it is stored, else with `error` as not written, or unknown if it was sent."""
        if self.rows:
            self._end_rows(stages)
            return
        if self.stored is None:
            outcome = Outcome.UNKNOWN if self.uncertain or self.in_flight else Outcome.NOT_WRITTEN
            for each in self.records:
                stages.finish(each, outcome, error)
            return
        offset, timestamp = self.stored
        for each in self.records:
            each.offset = offset
            if each.partition == ANY_PARTITION:
                each.partition = -1
            if timestamp >= 0:
                each.set_time(timestamp)
            stages.finish(each, _DELIVERED, None)
            offset += each.count if offset >= 0 else 0

    def _end_rows(self, stages: Stages) -> None:
        """End records by their own answers. Those that ended alike stay together."""
        at = 0
        for each in self.records:
            groups = _group(self.rows[at : at + each.count])
            at += each.count
            parts: Sequence[QueuedRecords] = (each,)
            if len(groups) > 1:
                parts = each.divide([places for _, places in groups])
                stages.divide(each, parts)
            for part, (first, _) in zip(parts, groups, strict=True):
                part.partition, part.offset = first.partition, first.offset
                if first.error is None:
                    stages.finish(part, Outcome.DELIVERED, None)
                    continue
                outcome = Outcome.UNKNOWN if first.uncertain else Outcome.NOT_WRITTEN
                sentence = f"topic {each.topic!r}: {first.error}"
                stages.finish(part, outcome, DeliveryFailed(sentence, cause=first.error))


def count_messages(records: Sequence[QueuedRecords]) -> int:
    """How many messages these are; rows count each."""
    return records[0].count if len(records) == 1 else sum(each.count for each in records)


def _group(rows: Sequence[RowAnswer]) -> list[tuple[RowAnswer, list[int]]]:
    """Rows that were stored one behind the other, or failed for the same reason: the first answer, and their places."""
    groups: dict[tuple[int, int, str, bool], tuple[RowAnswer, list[int]]] = {}
    stored: dict[int, int] = {}  # rows of each partition so far
    for place, row in enumerate(rows):
        base = row.offset
        if row.error is None:
            base -= stored.setdefault(row.partition, 0)
            stored[row.partition] += 1
        alike = row.partition, base, str(row.error or ""), row.uncertain
        groups.setdefault(alike, (row, []))[1].append(place)
    return list(groups.values())


def encode(
    records: Sequence[QueuedRecords], compression: int, producer: tuple[int, int], sequence: int
) -> bytes | memoryview:
    """Records as one batch. `producer`: id and epoch, (-1, -1) without idempotence."""
    if len(records) == 1:
        batch = records[0].build(compression, *producer, sequence)
        if batch is not None:
            return batch
    times = array("q")
    for each in records:
        times.extend(each.row_times())
    keys = list(chain.from_iterable(each.row_keys() for each in records))
    values = list(chain.from_iterable(each.row_values() for each in records))
    headers = [row for each in records for row in each.rows_of_headers()]
    if not any(headers):
        return build_rows(keys, values, times, compression, *producer, sequence)
    columns: dict[str, bytes | memoryview] = {"timestamp": memoryview(times)}
    _add_cells(columns, "value", values)
    _add_cells(columns, "key", keys)
    _add_headers(columns, headers)
    return bytes(build_batch(columns, compression, 0, *producer, sequence))


def _add_cells(columns: dict[str, bytes | memoryview], name: str, cells: Sequence[bytes | None]) -> None:
    """Without a null, which is the rule, nothing is done for each cell in Python."""
    whole = None not in cells
    filled: Sequence[bytes] = [cell or b"" for cell in cells] if not whole else cells  # type: ignore[assignment]
    _add_lengths(columns, f"{name}_offsets", map(len, filled))
    columns[name] = b"".join(filled)
    columns[f"{name}_valid"] = b"\1" * len(cells) if whole else bytes(cell is not None for cell in cells)


def _add_headers(columns: dict[str, bytes | memoryview], rows: Sequence[Headers]) -> None:
    names = [name.encode() for name, _ in chain.from_iterable(rows)]
    _add_lengths(columns, "header_offsets", map(len, rows))
    _add_lengths(columns, "header_key_offsets", map(len, names))
    columns["header_key"] = b"".join(names)
    _add_cells(columns, "header_value", [value for _, value in chain.from_iterable(rows)])


def _add_lengths(columns: dict[str, bytes | memoryview], name: str, lengths: Iterable[int]) -> None:
    columns[name] = memoryview(array("i", accumulate(lengths, initial=0)))
