"""What `send` of a producer does for each message: it joins a run, and gets a place there."""

import time
from array import array
from collections.abc import Sequence
from typing import Any, final

from korvet_reference.column_rows import RECORD_MOST, ColumnRows, build_rows
from korvet_reference.columns import Column


@final
class MessageCells:
    """Keys, values, headers and times of a run of messages, while more may join.

    `room`: bytes of memory that are left for them; `most`: messages there may be.
    """

    __slots__ = ("_header_bytes", "_headers", "_keys", "_times", "_values", "most", "room")

    def __init__(
        self, value: bytes | None, key: bytes | None, headers: Sequence[Any], header_bytes: int, timestamp: int | None
    ) -> None:
        """A run of one message, without room for others. `header_bytes`, `timestamp`: as in `add`.

        Raises `TypeError` for a value or key that is neither bytes nor None.
        """
        if not all(cell is None or isinstance(cell, bytes) for cell in (value, key)):
            raise TypeError("a message's key and value are bytes or None")
        self._values, self._keys, self._headers = [value], [key], [headers or ()]
        self._header_bytes = [header_bytes if headers else 0]
        self._times = array("q", [time.time_ns() // 1_000_000 if timestamp is None else timestamp])
        self.room = 0
        self.most = 1

    def __len__(self) -> int:
        """How many messages."""
        return len(self._times)

    @property
    def size(self) -> int:
        """Bytes of their records in a batch, at most."""
        cells = sum(len(cell or b"") for cell in (*self._keys, *self._values))
        return cells + sum(self._header_bytes) + RECORD_MOST * len(self)

    def add(
        self, value: Any, key: Any, headers: Sequence[Any], header_bytes: int = 0, timestamp: int | None = None
    ) -> int:
        """Take one more message; its index, or -1 without room, and for what is neither bytes nor None.

        `header_bytes`: what its headers take in a batch. `timestamp`: in ms; None: the present.
        """
        if not all(cell is None or type(cell) is bytes for cell in (value, key)):
            return -1
        header_bytes = header_bytes if headers else 0
        room = self.room - RECORD_MOST - len(value or b"") - len(key or b"") - header_bytes
        index = len(self)
        if room < 0 or index >= self.most:
            return -1
        self._values.append(value)
        self._keys.append(key)
        self._headers.append(headers or ())
        self._header_bytes.append(header_bytes)
        self._times.append(time.time_ns() // 1_000_000 if timestamp is None else timestamp)
        self.room = room
        return index

    def join(self, place: type, run: Any, value: Any, key: Any) -> Any | None:
        """As `add`, for a message without headers that is sent now: `place(run, index)`; None where `add` gives -1."""
        index = self.add(value, key, ())
        return None if index < 0 else place(run, index)

    @staticmethod
    def place(place: type, run: Any, index: int) -> Any:
        """`place(run, index)` for a message that is there, as `join` makes it."""
        return place(run, index)

    def grant(self, room: int, most: int) -> None:
        """There is memory for `room` bytes more, and for `most` messages in all."""
        self.room += room
        self.most = most

    def values(self) -> list[bytes | None]:
        """The value of each message."""
        return list(self._values)

    def keys(self) -> list[bytes | None]:
        """The key of each message."""
        return list(self._keys)

    def headers(self) -> list[Sequence[Any]]:
        """The headers of each message, () for none."""
        return list(self._headers)

    def key(self, place: int) -> bytes | None:
        """The key of the message at a place."""
        return self._keys[place]

    def time(self, place: int) -> int:
        """The time of the message at a place, in ms."""
        return self._times[place]

    def times(self) -> Column:
        """All times, q[n]."""
        return Column("q", self._times)

    def columns(self) -> ColumnRows:
        """Keys and values."""
        return ColumnRows(self.keys(), self.values())

    def part(self, places: Sequence[int]) -> "MessageCells":
        """The messages at these places as a run of their own, without room for others."""
        own = MessageCells(None, None, (), 0, 0)
        own._values = [self._values[place] for place in places]
        own._keys = [self._keys[place] for place in places]
        own._headers = [self._headers[place] for place in places]
        own._header_bytes = [self._header_bytes[place] for place in places]
        own._times = array("q", [self._times[place] for place in places])
        own.most = len(own)
        return own

    def build(
        self, compression: int, producer_id: int, producer_epoch: int, base_sequence: int
    ) -> bytes | memoryview | None:
        """The messages as one version 2 batch, each with its time. None: some of them have headers.

        Raises as `build_rows`.
        """
        if any(self._headers):
            return None
        times = memoryview(self._times)
        return build_rows(self._keys, self._values, times, compression, producer_id, producer_epoch, base_sequence)

    def set_times(self, timestamp: int) -> None:
        """All messages have this time."""
        self._times = array("q", [timestamp]) * len(self)

    def remove(self, place: int) -> None:
        """The message at a place leaves the run."""
        for column in (self._values, self._keys, self._headers, self._header_bytes, self._times):
            del column[place]

    def forget(self) -> None:
        """Drop keys, values and headers; the times stay. Nothing but these may be asked for any more."""
        for column in (self._values, self._keys, self._headers, self._header_bytes):
            column.clear()
