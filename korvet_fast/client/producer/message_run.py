"""Messages of `send` for one partition that came one after the other: one object on its way through the stages."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import repeat
from typing import Final, Protocol

from korvet_fast._native import MessageCells
from korvet_fast.client.producer.message import (
    COPIES,
    OVERHEAD,
    Headers,
    QueuedRecords,
    RecordMetadata,
    RecordState,
    headers_size,
)
from korvet_fast.client.producer.unread_results import UnreadResults

GROWTH: Final = 4  # times what an open run holds: so much memory it asks for at once


class Waiter(Protocol):
    """Somebody who waits for a message: a future of the driver's."""

    def done(self) -> bool:
        """Whether the waiter has its result, or was cancelled."""

    def set_result(self, result: None, /) -> None:
        """Let it go on."""


class RunOwner(Protocol):
    """The producer that a run was sent by."""

    def enter(self) -> float:
        """The producer's time. Raises `RuntimeError` in another event loop than the producer's."""

    def withdraw(self, run: "MessageRun", index: int) -> "tuple[MessageRun, int] | None":
        """Take one message back: the run that it is in then, and its index there; None if it is in a batch."""


class MessageRun(QueuedRecords):
    """One message, and while the run is open those that follow it in the same turn of the loop; they share a deadline.

    While it is open, `charge` covers `granted` bytes and `cells.most` messages; `cells.room`: bytes of these that are
    left. Indexes are those of `add`, whatever was withdrawn since. `parts`: what it became when it was divided, because
    its messages go to several partitions, or because their batch was too large. `unread`: failures that nobody has
    read; None for a run that did not fail.
    """

    __slots__ = (
        "cells",
        "confirmed",
        "gone",
        "granted",
        "limit",
        "owner",
        "parts",
        "unread",
        "waiters",
    )

    def __init__(self, topic: str, cells: MessageCells, partition: int, owner: RunOwner) -> None:
        super().__init__(topic, (), None, (), partition, 0, cells.size)
        self.count = len(cells)
        self.cells = cells
        self.owner = owner
        self.confirmed = True
        self.granted = self.size
        self.limit = 0
        self.gone: Sequence[int] = ()  # indexes of messages that were withdrawn, in order
        self.parts: RunParts | None = None
        self.unread: UnreadResults | None = None
        self.waiters: dict[int, list[Waiter]] = {}

    def add(self, value: bytes | None, key: bytes | None, headers: Headers, timestamp: int) -> int:
        """Take one more message; its index, or -1 if the run has no room for it. Only while it is open."""
        return self.cells.add(value, key, headers, headers_size(headers) if headers else 0, timestamp)

    def grown(self, size: int, usual: tuple[int, int]) -> tuple[int, int]:
        """Bytes and messages to be granted in all, so that a message of `size` bytes has room, and others behind it.

        `usual`: of runs like this one.
        """
        held = self.granted - self.cells.room
        most = max(GROWTH * len(self.cells), usual[1])
        return min(max(GROWTH * held, held + size, usual[0]), self.limit), most

    def grown_exactly(self, size: int) -> tuple[int, int]:
        """As `grown`, without room for others."""
        return self.granted - self.cells.room + size, len(self.cells) + 1

    def grant(self, granted: int, most: int) -> None:
        """Memory for so many bytes and messages is counted."""
        self.cells.grant(granted - self.granted, most)
        self.granted = granted
        self.charge = COPIES * granted + OVERHEAD * most

    def shut(self) -> int:
        """Take no more messages: count and size are final. Returns what was charged for nothing."""
        self.size = self.granted - self.cells.room
        self.count = self.cells.most = len(self.cells)
        self.granted, self.cells.room = self.size, 0
        charge, self.charge = self.charge, COPIES * self.size + OVERHEAD * self.count
        return charge - self.charge

    def first_key(self) -> bytes | None:
        return self.cells.key(0)

    def row_values(self) -> list[bytes | None]:
        return self.cells.values()

    def row_keys(self) -> list[bytes | None]:
        return self.cells.keys()

    def rows_of_headers(self) -> list[Headers]:
        return self.cells.headers()

    def row_times(self) -> memoryview:
        return memoryview(self.cells.times())

    def build(self, compression: int, producer_id: int, epoch: int, sequence: int) -> bytes | memoryview | None:
        return self.cells.build(compression, producer_id, epoch, sequence)

    def set_time(self, timestamp: int) -> None:
        self.cells.set_times(timestamp)

    def metadata(self, position: int) -> RecordMetadata:
        """The metadata of a message; only when the message is delivered."""
        offset = self.offset + position if self.offset >= 0 else -1
        cells = self.topic, self.partition, offset, self.cells.time(position), self.confirmed
        return tuple.__new__(RecordMetadata, cells)  # in half the time of a call

    def position(self, index: int) -> int:
        """The place of a message among those that were not withdrawn."""
        return index - bisect_left(self.gone, index) if self.gone else index

    def take_out(self, index: int) -> "MessageRun":
        """One message as a run of its own. Its share of the charge, and those who wait for it, go with it."""
        at = self.position(index)
        self.gone = sorted((*self.gone, index))
        own = self._part((at,))
        self.cells.remove(at)
        self.granted -= own.size
        self.shut()
        own.waiters = {0: self.waiters.pop(index)} if index in self.waiters else {}
        return own

    def halves(self) -> tuple["MessageRun", "MessageRun"]:
        """The first and the second half, which share what was counted for the whole, and those who wait."""
        half = self.count // 2
        first, second = self.divide((range(half), range(half, self.count)))
        return first, second

    def divide(self, places: Sequence[Sequence[int]]) -> list["MessageRun"]:
        """A run for each of the sequences of places, which together are all; each is charged for its messages."""
        runs = [self._part(each) for each in places]
        self.parts = RunParts(runs, places)
        for index, futures in self.waiters.items():
            run, at = self.parts.find(self.position(index))
            run.waiters[at] = futures
        self.waiters = {}
        return runs

    def indexes(self) -> set[int]:
        """Those of its messages that were not withdrawn."""
        return set(range(self.count + len(self.gone))).difference(self.gone)

    def forget(self) -> None:
        """The run has ended: drop its keys, values and headers. The times stay for the results."""
        self.cells.forget()

    def _part(self, places: Sequence[int]) -> "MessageRun":
        own = MessageRun(self.topic, self.cells.part(places), self.partition, self.owner)
        own.charge = COPIES * own.size + OVERHEAD * own.count
        own.deadline, own.number = self.deadline, self.number
        own.destination, own.state = self.destination, self.state
        return own

    @property
    def is_withdrawable(self) -> bool:
        """Whether its messages are in no batch yet, and have not ended."""
        return self.state in (RecordState.LINE, RecordState.PENDING, RecordState.QUEUED)


class RunParts:
    """The runs that one run was divided into, and where each of its messages is now."""

    def __init__(self, runs: Sequence[MessageRun], places: Sequence[Sequence[int]]) -> None:
        self._runs = runs
        self._places = places  # of each run's messages, in the run that was divided
        self._found: dict[int, tuple[MessageRun, int]] | None = None  # made for the first who asks

    def find(self, place: int) -> tuple[MessageRun, int]:
        """The run that a message is in now, and its index there."""
        if self._found is None:
            self._found = {}
            for run, places in zip(self._runs, self._places, strict=True):
                self._found.update(zip(places, zip(repeat(run), range(len(places))), strict=True))
        return self._found[place]
