"""One connection for the hot path: packed commands out, whole replies in, matched in order.

All that is sent in one turn of the loop leaves in one write. A reply is matched to its call by nothing but its turn,
so a connection that is cut, or that answers too late, is never used again: all its calls fail, none gets a neighbour's
reply.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import cast

from korvet_fast._native import Replies, pack
from korvet_fast.core.types import Buffer
from korvet_fast.errors import CodecError, StoreError

REPLY_LIMIT = 512 * 1024 * 1024  # bytes of one reply; Redis' own limit for a string
UNSENT_LIMIT = 256 * 1024 * 1024  # bytes that wait for the server to take them; more are refused
CROWDED, CLEARED = 4 * 1024 * 1024, 1024 * 1024  # bytes unsent: from here on wait, from here on go on
WINDOW = 256 * 1024  # bytes read at a time

_ASKING = pack([["ASKING"]])


class LaneDown(StoreError):
    """There is no connection: nothing was sent."""


class LaneLost(StoreError):
    """The connection was lost with the call under way: nobody knows whether the server carried it out."""


class _Call:
    """Some commands sent, and the replies to them so far."""

    __slots__ = ("due", "expected", "future", "replies")

    def __init__(self, future: "asyncio.Future[list[Buffer]]", expected: int, due: float) -> None:
        self.future = future
        self.expected = expected
        self.due = due
        self.replies: list[Buffer] = []


class Lane(asyncio.BufferedProtocol):
    """The asyncio protocol of one connection to a server. Made by `connect` (connect.py)."""

    def __init__(self, name: str, timeout: float) -> None:
        """`name`: the server, for messages. `timeout`: seconds that an answer may take."""
        self.name = name
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._replies = Replies(REPLY_LIMIT, raw=True)
        self._window = memoryview(bytearray(WINDOW))
        self._calls: deque[_Call] = deque()  # in the order of their replies
        self._written = 0  # how many of them have left for the transport
        self._gathered: list[Buffer] = []  # what this turn of the loop has sent so far
        self._size = 0  # bytes of that
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._room: asyncio.Future[None] | None = None  # ended when there is room again
        self._choked = False
        self._why = ""  # why the connection ended

    @property
    def up(self) -> bool:
        """Whether something can be sent."""
        return self._transport is not None

    @property
    def why(self) -> str:
        """Why it is not up, in words."""
        return self._why or f"{self.name} is not connected"

    @property
    def asking(self) -> bool:
        """Whether only single commands and transactions can be sent, as on an `Asking`."""
        return False

    @property
    def crowded(self) -> bool:
        """Whether so much is unsent that a caller that can should wait for `room`."""
        return self._choked or self._size > CROWDED

    async def room(self) -> None:
        """Wait until what is unsent has become less, or the connection is lost."""
        if self.crowded and self.up:
            if self._room is None:
                self._room = self._loop.create_future()
            await asyncio.shield(self._room)

    def send(
        self, packed: Buffer | Sequence[Buffer], replies: int = 1, *, joined: bool = False
    ) -> "asyncio.Future[list[Buffer]]":
        """Send commands, as `pack` makes them (or parts of them), that get `replies` replies in all.

        The future gives the replies as they came, each a whole one in RESP (`_native.reply` reads it), errors among
        them; `joined`, all of them in one buffer (`_native.replies`). It fails with `LaneLost`. Raises `LaneDown`. The
        parts must not be changed before the future ends.
        """
        parts = (packed,) if isinstance(packed, bytes | bytearray | memoryview) else packed
        size = sum(map(len, parts))
        transport = self._transport
        if transport is None:
            raise LaneDown(self.why)
        if self._size + size + transport.get_write_buffer_size() > UNSENT_LIMIT:
            raise LaneDown(f"{self.name} does not take what it is sent: {UNSENT_LIMIT >> 20} MiB wait")
        future = self._loop.create_future()
        if joined:
            self._replies.join(replies)
        else:
            for _ in range(replies):  # what is joined is counted in the order of the calls, so these count too
                self._replies.join(1)
        self._calls.append(_Call(future, 1 if joined else replies, self._loop.time() + self._timeout))
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.extend(parts)
        self._size += size
        if self._timer is None:
            self._timer = self._loop.call_at(self._calls[0].due, self._expire)
        return future

    def close(self, why: str) -> None:
        """End the connection. What is under way fails with `LaneLost`, what has not left yet with `LaneDown`."""
        self._end(why)

    def _flush(self) -> None:
        if self._transport is not None:
            gathered, self._gathered = self._gathered, []
            self._size = 0
            self._written = len(self._calls)
            self._transport.writelines(gathered)
            self._release()

    def _expire(self) -> None:
        self._timer = None
        if not self._calls:
            return
        due = self._calls[0].due
        if self._loop.time() >= due:
            self._end(f"{self.name} did not answer within {self._timeout:g} s")
        else:
            self._timer = self._loop.call_at(due, self._expire)

    def _end(self, why: str) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        self._why = why
        transport.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls, self._calls = self._calls, deque()
        written, self._written = self._written, 0
        self._gathered = []
        self._size = 0
        for number, call in enumerate(calls):
            if not call.future.done():
                call.future.set_exception(LaneLost(why) if number < written else LaneDown(why))
        self._choked = False
        self._release()

    def _release(self) -> None:
        if self._room is not None and not self.crowded:
            self._room.set_result(None)
            self._room = None

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(CROWDED, CLEARED)

    def get_buffer(self, _: int) -> memoryview:
        return self._window

    def buffer_updated(self, count: int) -> None:
        if self._transport is None:
            return
        try:
            arrived = self._replies.feed(self._window[:count])
        except CodecError as error:
            self._end(f"{self.name} does not speak Redis' protocol: {error}")
            return
        calls = self._calls
        for reply in arrived:
            if not calls:
                self._end(f"{self.name} answered more than it was asked")
                return
            call = calls[0]
            call.replies.append(reply)
            if len(call.replies) == call.expected:
                calls.popleft()
                self._written -= 1
                if not call.future.done():
                    call.future.set_result(call.replies)

    def eof_received(self) -> None:
        self._end(f"{self.name} closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._end(f"the connection to {self.name} was lost" + (f": {error}" if error else ""))

    def pause_writing(self) -> None:
        self._choked = True

    def resume_writing(self) -> None:
        self._choked = False
        self._release()


class Asking:
    """A lane to the node that a slot of a Cluster is moving to; it answers only those who ask.

    Each command or transaction needs an ASKING before it, so they are sent one by one.
    """

    def __init__(self, lane: Lane) -> None:
        self.name = lane.name
        self._lane = lane

    @property
    def up(self) -> bool:
        """As `Lane.up`."""
        return self._lane.up

    @property
    def asking(self) -> bool:
        """Whether only single commands and transactions can be sent."""
        return True

    @property
    def crowded(self) -> bool:
        """As `Lane.crowded`."""
        return self._lane.crowded

    async def room(self) -> None:
        """As `Lane.room`."""
        await self._lane.room()

    def send(
        self, packed: Buffer | Sequence[Buffer], replies: int = 1, *, joined: bool = False
    ) -> "asyncio.Future[list[Buffer]]":
        """As `Lane.send`, for one command or (`joined`) one transaction, through which an ASKING before MULTI holds.

        Raises `LaneDown` for anything else: that has to wait until the slot has moved.
        """
        if replies != 1 and not joined:
            raise LaneDown(f"TRYAGAIN the slot is moving to {self.name}")
        asked = self._lane.send(_ASKING)
        asked.add_done_callback(lambda ended: ended.exception())  # the command tells what went wrong
        return self._lane.send(packed, replies, joined=joined)
