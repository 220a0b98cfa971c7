"""Messages of `send` for one partition that came one after the other: one object on its way through the stages."""

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, MutableSequence
from typing import Any, Final, Protocol

from korvet_fast.client.producer.message import (
    COPIES,
    OVERHEAD,
    RECORD_MOST,
    Headers,
    QueuedRecords,
    RecordMetadata,
    RecordState,
    headers_size,
)

GROWTH: Final = 4  # times what an open run holds: so much memory it asks for at once


class Waiter(Protocol):
    """Somebody who waits for a message: a future of the driver's."""

    def done(self) -> bool:
        """Whether it waits no longer."""

    def set_result(self, result: None, /) -> None:
        """Let it go on."""


class MessageRun(QueuedRecords):
    """One message, and while the run is open those that follow it in the same turn of the loop; they share a deadline.

    While it is open, `charge` covers `granted` bytes and `most` messages; `room`: bytes of these that are left. Indexes
    are those of `add`, whatever was withdrawn since. `halves_made`: what it became in a batch that was too large.
    """

    __slots__ = (
        "confirmed",
        "gone",
        "granted",
        "halves_made",
        "header_rows",
        "key_cells",
        "limit",
        "most",
        "room",
        "times",
        "value_cells",
        "waiters",
        "withdraw",
    )

    def __init__(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int,
        timestamp: int,
        withdraw: Callable[["MessageRun", int], "MessageRun | None"],
    ) -> None:
        self.value_cells: list[bytes | None] = [value]
        self.key_cells: list[bytes | None] = [key]
        super().__init__(topic, self.value_cells, None if key is None else self.key_cells, headers, partition, 0)
        self.header_rows: list[Headers] = [headers]
        self.times = array("q", (timestamp,))
        self.withdraw = withdraw
        self.confirmed = True
        self.granted = self.size
        self.most = 1
        self.room = 0
        self.limit = 0
        self.gone: list[int] = []  # indexes of messages that were withdrawn, in order
        self.halves_made: tuple[MessageRun, MessageRun] | None = None
        self.waiters: dict[int, list[Waiter]] = {}

    def add(self, value: bytes | None, key: bytes | None, headers: Headers, timestamp: int) -> int:
        """Take one more message; its index, or -1 if the run has no room for it. Only while it is open."""
        index = len(self.value_cells)
        room = self.room - RECORD_MOST
        if value is not None:
            room -= len(value)
        if key is not None:
            room -= len(key)
        if headers:
            room -= headers_size(headers)
        if room < 0 or index >= self.most:
            return -1
        self.room = room
        self.value_cells.append(value)
        self.key_cells.append(key)
        self.header_rows.append(headers)
        self.times.append(timestamp)
        return index

    def grown(self, size: int, exactly: bool) -> tuple[int, int]:
        """Bytes and messages to be granted in all, so that a message of `size` bytes has room."""
        held = self.granted - self.room
        if exactly:
            return held + size, len(self.value_cells) + 1
        return min(max(GROWTH * held, held + size), self.limit), GROWTH * len(self.value_cells)

    def grant(self, granted: int, most: int) -> None:
        """Memory for so many bytes and messages is counted."""
        self.room += granted - self.granted
        self.granted, self.most = granted, most
        self.charge = COPIES * granted + OVERHEAD * most

    def shut(self) -> int:
        """Take no more messages: count and size are final. Returns what was charged for nothing."""
        self.size = self.granted - self.room
        self.count = self.most = len(self.value_cells)
        self.granted, self.room = self.size, 0
        if self.key_cells.count(None) < self.count:
            self.keys = self.key_cells
        charge, self.charge = self.charge, COPIES * self.size + OVERHEAD * self.count
        return charge - self.charge

    def rows_of_headers(self) -> list[Headers]:
        return self.header_rows

    def row_times(self) -> "array[int]":
        return self.times

    def set_time(self, timestamp: int) -> None:
        self.times = array("q", (timestamp,)) * self.count

    def metadata(self, position: int) -> RecordMetadata:
        """Where a message is; only when it is delivered."""
        offset = self.offset + position if self.offset >= 0 else -1
        return RecordMetadata(self.topic, self.partition, offset, self.times[position], self.confirmed)

    def position(self, index: int) -> int:
        """The place of a message among those that were not withdrawn."""
        return index - bisect_left(self.gone, index) if self.gone else index

    def take_out(self, index: int) -> "MessageRun":
        """One message as a run of its own. Its share of the charge, and those who wait for it, go with it."""
        at = self.position(index)
        insort(self.gone, index)
        own = self._part(slice(at, at + 1))
        columns: tuple[MutableSequence[Any], ...] = self.value_cells, self.key_cells, self.header_rows, self.times
        for column in columns:
            del column[at]
        self.granted -= own.size
        self.shut()
        own.waiters = {0: self.waiters.pop(index)} if index in self.waiters else {}
        return own

    def halves(self) -> tuple["MessageRun", "MessageRun"]:
        """The first and the second half, which share what was counted for the whole, and those who wait."""
        half = self.count // 2
        first, second = self.halves_made = self._part(slice(None, half)), self._part(slice(half, None))
        for index, futures in self.waiters.items():
            at = self.position(index)
            (first if at < half else second).waiters[at if at < half else at - half] = futures
        self.waiters = {}
        return first, second

    def forget(self) -> None:
        """It has ended: what it held is not needed any more. Times stay, for results."""
        self.value_cells.clear()
        self.key_cells.clear()
        self.header_rows.clear()

    def _part(self, part: slice) -> "MessageRun":
        value, key, headers = self.value_cells[part], self.key_cells[part], self.header_rows[part]
        times = self.times[part]
        own = MessageRun(self.topic, value[0], key[0], headers[0], self.partition, times[0], self.withdraw)
        for at in range(1, len(value)):
            own.room = RECORD_MOST + len(value[at] or b"") + len(key[at] or b"") + headers_size(headers[at])
            own.granted += own.room
            own.most += 1
            own.add(value[at], key[at], headers[at], times[at])
        own.charge = 0
        own.shut()
        own.deadline, own.number = self.deadline, self.number
        own.destination, own.state = self.destination, self.state
        return own

    @property
    def is_withdrawable(self) -> bool:
        """Whether its messages are in no batch yet, and have not ended."""
        return self.state in (RecordState.LINE, RecordState.PENDING, RecordState.QUEUED)
