"""What `send` of a producer does for each message: it joins a run, and gets a place there."""

import time
from array import array
from typing import Any, final

from korvet_reference.column_rows import RECORD_MOST, build_rows
from korvet_reference.columns import Column
from korvet_reference.varint import Bytes


@final
class MessageCells:
    """Values, keys, headers and times of a run of messages, in the lists given, while more may join.

    `room`: bytes of memory that are left for them; `most`: messages there may be.
    """

    __slots__ = ("_headers", "_keys", "_times", "_values", "most", "room")

    def __init__(self, values: list[Any], keys: list[Any], headers: list[Any], times: Bytes) -> None:
        """`times`: q[n], in ms, one for each value that is there."""
        self._values, self._keys, self._headers = values, keys, headers
        self._times = array("q", bytes(times))
        self.room = 0
        self.most = 1

    def add(self, value: Any, key: Any, headers: Any, header_bytes: int = 0, timestamp: int | None = None) -> int:
        """Take one more message; its index, or -1 without room, and for what is neither bytes nor None.

        `header_bytes`: what its headers take in a batch. `timestamp`: in ms; None: the present.
        """
        if not all(cell is None or type(cell) is bytes for cell in (value, key)):
            return -1
        room = self.room - RECORD_MOST - len(value or b"") - len(key or b"") - header_bytes
        index = len(self._times)
        if room < 0 or index >= self.most:
            return -1
        self._values.append(value)
        self._keys.append(key)
        self._headers.append(headers)
        self._times.append(time.time_ns() // 1_000_000 if timestamp is None else timestamp)
        self.room = room
        return index

    def join(self, place: type, run: Any, value: Any, key: Any) -> Any | None:
        """As `add`, for a message without headers that is sent now: `place(run, index)`; None where `add` gives -1."""
        index = self.add(value, key, ())
        return None if index < 0 else place(run, index)

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

    def time(self, place: int) -> int:
        """The time of the message at a place, in ms."""
        return self._times[place]

    def times(self) -> Column:
        """All times, q[n]."""
        return Column("q", self._times)

    def set_times(self, timestamp: int) -> None:
        """All messages have this time."""
        self._times = array("q", [timestamp]) * len(self._times)

    def forget_time(self, place: int) -> None:
        """The message at a place was taken out of the lists: its time goes too."""
        del self._times[place]
