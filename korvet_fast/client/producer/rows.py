"""Columns for `send_many`: cut into runs of rows that go to the same partition, batched as they are."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from korvet_fast.client.producer.delivery import failure_of
from korvet_fast.client.producer.message import DeliveryFailed, Outcome, QueuedRecords

MOST_ROWS = 10_000  # of one run: so many are encoded at a time


class ColumnMetadata(NamedTuple):
    """Where the rows of a column are, in the order of the rows. `offsets`: -1 where the broker did not say."""

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
        self._result = ColumnMetadata(topic, [-1] * count, [-1] * count)

    def result(self) -> ColumnMetadata:
        """Where the rows are. Raises `RowsFailed`; only when none is open."""
        if self.failures:
            first = min(self.failures)
            outcomes = {each.outcome for each in self.failures.values()}
            raise RowsFailed(
                f"{len(self.failures):,} of {len(self._result.offsets):,} rows failed, the first is {first}: "
                f"{self.failures[first]}",
                Outcome.UNKNOWN if Outcome.UNKNOWN in outcomes else Outcome.NOT_WRITTEN,
                self.failures[first],
                self.failures,
            )
        return self._result

    def end(self, rows: Sequence[int], records: QueuedRecords) -> None:
        """Some rows have ended."""
        self.open -= len(rows)
        error = failure_of(records)
        for at, row in enumerate(rows):
            self._result.partitions[row] = records.partition
            if error is not None:
                self.failures[row] = error
            elif records.offset >= 0:
                self._result.offsets[row] = records.offset + at

    def refuse(self, rows: Sequence[int], error: DeliveryFailed) -> None:
        """Some rows were not even accepted."""
        self.open -= len(rows)
        self.failures.update((row, error) for row in rows)


class Rows(QueuedRecords):
    """A run of rows of a column, for one partition."""

    __slots__ = ("column", "rows")

    def __init__(
        self,
        column: Column,
        rows: Sequence[int],
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        partition: int,
        timestamp: int,
    ) -> None:
        super().__init__(topic, values, keys, (), partition, timestamp)
        self.column = column
        self.rows = rows

    def halves(self) -> tuple["Rows", "Rows"]:
        """The first and the second half, which share what was counted for the whole."""
        half = self.count // 2
        first, second = self._part(slice(None, half)), self._part(slice(half, None))
        first.charge = self.charge // 2
        second.charge = self.charge - first.charge
        return first, second

    def _part(self, part: slice) -> "Rows":
        keys = self.keys[part] if self.keys is not None else None
        own = Rows(self.column, self.rows[part], self.topic, self.values[part], keys, self.partition, self.timestamp)
        own.deadline, own.number = self.deadline, self.number
        own.destination, own.state = self.destination, self.state
        return own


def read_column(name: str, column: Any) -> list[bytes | None]:
    """A list, a NumPy array or an Arrow array of bytes as a list. Raises `TypeError` for anything else in it."""
    for method in ("to_pylist", "tolist"):  # Arrow, NumPy
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    found = list(column)
    for row, cell in enumerate(found):
        if cell is not None and type(cell) is not bytes:
            if not isinstance(cell, bytes | bytearray | memoryview):
                raise TypeError(f"row {row} of {name} is {type(cell).__name__}; send_many takes bytes or None")
            found[row] = bytes(cell)
    return found


def cut_runs(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, most: int) -> Iterator[slice]:
    """Slices of at most `most` bytes each, and one row at least."""
    begin = size = 0
    for row, value in enumerate(values):
        more = len(value or b"") + (len(keys[row] or b"") if keys else 0) + 36
        if row > begin and (size + more > most or row - begin >= MOST_ROWS):
            yield slice(begin, row)
            begin, size = row, 0
        size += more
    if begin < len(values):
        yield slice(begin, len(values))


def group_rows(keys: Sequence[bytes | None], choose: Callable[[bytes | None], int]) -> dict[int, list[int]]:
    """The rows of each partition, in order. `choose`: the partition of a key."""
    found: dict[int, list[int]] = {}
    for row, key in enumerate(keys):
        found.setdefault(choose(key), []).append(row)
    return found
