"""Columns for `send_many`: runs of rows that go to the same partition, batched natively from where they are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from korvet_fast._native import RowRun, row_places
from korvet_fast.client.producer.message import DeliveryFailed, Outcome, QueuedRecords, failure_of


class ColumnMetadata(NamedTuple):
    """Partitions and offsets of a column's rows, in their order. `offsets`: -1 where the broker did not say."""

    topic: str
    partitions: list[int]
    offsets: list[int]


class RowsFailed(DeliveryFailed):
    """Some rows were not delivered. `failures`: row -> why; `outcome` UNKNOWN if that of any is."""

    def __init__(
        self,
        sentence: str,
        outcome: Outcome = Outcome.NOT_WRITTEN,
        cause: Exception | None = None,
        failures: dict[int, DeliveryFailed] | None = None,
    ) -> None:
        super().__init__(sentence, outcome, cause)
        self.failures = failures or {}


class Column:
    """The result of one `send_many`, filled in while its rows end. `open`: rows that have not."""

    def __init__(self, topic: str, count: int) -> None:
        self.open = count
        self.failures: dict[int, DeliveryFailed] = {}
        self._topic = topic
        self._count = count
        self._ended: list[tuple[RowRun, int, int]] = []  # with the partition, and the offset of the first row

    def result(self) -> ColumnMetadata:
        """Partitions and offsets of the rows. Raises `RowsFailed`; only when none is open."""
        if self.failures:
            first = min(self.failures)
            outcomes = {each.outcome for each in self.failures.values()}
            raise RowsFailed(
                f"{len(self.failures):,} of {self._count:,} rows failed, the first is {first}: {self.failures[first]}",
                Outcome.UNKNOWN if Outcome.UNKNOWN in outcomes else Outcome.NOT_WRITTEN,
                self.failures[first],
                self.failures,
            )
        return ColumnMetadata(self._topic, *row_places(self._ended, self._count))

    def end(self, rows: RowRun, records: QueuedRecords) -> None:
        """Some rows have ended."""
        error = failure_of(records)
        if error is not None:
            self.refuse(rows, error)
            return
        self.open -= len(rows)
        self._ended.append((rows, records.partition, records.offset))

    def refuse(self, rows: RowRun, error: DeliveryFailed) -> None:
        """Some rows have failed, or were not even accepted."""
        self.open -= len(rows)
        self.failures.update((row, error) for row in rows.rows())


class QueuedRows(QueuedRecords):
    """A run of rows of a column, for one partition. They stay where they are until they are in a batch."""

    __slots__ = ("column", "rows")

    def __init__(self, column: Column, rows: RowRun, topic: str, partition: int, timestamp: int) -> None:
        super().__init__(topic, (), None, (), partition, timestamp, rows.size)
        self.column = column
        self.rows = rows
        self.count = len(rows)

    def row_values(self) -> Sequence[bytes | None]:
        return self.rows.values()

    def row_keys(self) -> Sequence[bytes | None]:
        return self.rows.keys()

    def build(self, compression: int, producer_id: int, epoch: int, sequence: int) -> bytes | memoryview | None:
        return self.rows.build(self.timestamp, compression, producer_id, epoch, sequence)

    def halves(self) -> tuple["QueuedRows", "QueuedRows"]:
        """The first and the second half, which share what was counted for the whole."""
        first, second = map(self._part, self.rows.halves())
        first.charge = self.charge // 2
        second.charge = self.charge - first.charge
        return first, second

    def _part(self, rows: RowRun) -> "QueuedRows":
        own = QueuedRows(self.column, rows, self.topic, self.partition, self.timestamp)
        own.deadline, own.number = self.deadline, self.number
        own.destination, own.state = self.destination, self.state
        return own


def read_column(column: Any) -> Any:
    """A column as `ColumnRows` reads it: an Arrow array of binary as it is, anything else as a list."""
    if hasattr(column, "combine_chunks"):  # Arrow's ChunkedArray
        column = column.combine_chunks()
    if hasattr(column, "__arrow_c_array__") and str(column.type) in ("binary", "large_binary"):
        return column
    for method in ("to_pylist", "tolist"):  # Arrow, NumPy
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    return list(column)
