"""One connection for the hot path: packed commands out, whole replies in, matched in order.

All that is sent in one turn of the loop leaves in one write, unless somebody pushes. A reply is matched to its call by
nothing but its turn, so a connection that is cut, or that answers too late, is never used again: all its calls fail,
none gets a neighbour's reply.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TypeAlias, cast

from korvet_fast._native import Replies, encode_commands
from korvet_fast.errors import CodecError, StoreError
from korvet_fast.store.types import Spent
from korvet_fast.types import Buffer

REPLY_LIMIT = 512 * 1024 * 1024  # bytes of one reply; Redis' own limit for a string
UNSENT_LIMIT = 256 * 1024 * 1024  # bytes that wait for the server to take them; more are refused
WINDOW = 256 * 1024  # bytes read at a time

Word: TypeAlias = Buffer | str | int  # a word of a command

_ASKING = encode_commands([["ASKING"]])

# Told how a call ended: its replies, or why there are none.
Ended: TypeAlias = "Callable[[list[Buffer], StoreError | None], object]"


class PipelineDown(StoreError):
    """There is no connection: nothing was sent."""


class PipelineLost(StoreError):
    """The connection was lost with the call under way: nobody knows whether the server carried it out."""


class _Call:
    """Some commands sent, and the replies to them so far."""

    __slots__ = ("began", "due", "ended", "expected", "replies")

    def __init__(self, expected: int, began: float, due: float, ended: Ended) -> None:
        self.expected = expected
        self.began = began
        self.due = due
        self.ended = ended
        self.replies: list[Buffer] = []


class Pipeline(asyncio.BufferedProtocol):
    """The asyncio protocol of one connection to a server. Made by `connect` (connect.py)."""

    def __init__(self, name: str, timeout: float, round_trips: Spent | None = None) -> None:
        """`name`: the server, for messages. `timeout`: seconds that an answer may take.

        `round_trips` counts the calls that were answered.
        """
        self.name = name
        self._timeout = timeout
        self._round_trips = round_trips or Spent()
        self._began = 0.0  # when the first of the gathered commands came
        self._loop = asyncio.get_running_loop()
        self._replies = Replies(REPLY_LIMIT, raw=True)
        self._window = memoryview(bytearray(WINDOW))
        self._calls: deque[_Call] = deque()  # in the order of their replies
        self._written = 0  # how many of them have left for the transport
        self._gathered: list[Buffer] = []  # the commands that this turn of the loop has sent so far
        self._size = 0  # bytes of that
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._why = ""  # why the connection ended
        self.expired = False  # it ended because an answer did not come in time

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

    def send(self, packed: Buffer, replies: int = 1) -> "asyncio.Future[list[Buffer]]":
        """Send commands, as `encode_commands` makes them, that get `replies` replies in all.

        The future gives the replies as they came, each a whole one in RESP (for `_native.parse_reply`), errors among
        them. It fails with `PipelineLost`. Raises `PipelineDown`. The bytes must not change before the future ends.
        """
        future: asyncio.Future[list[Buffer]] = self._loop.create_future()
        self._enter((packed,), [1] * replies, partial(_end, future))
        return future

    def post(self, parts: Sequence[Buffer], replies: int, ended: Ended) -> None:
        """As `send`, of commands in parts; all replies come in one buffer (for `parse_replies`), and without a future.

        Never ends before this returns.
        """
        self._enter(parts, [replies], ended)

    def push(self) -> None:
        """Send now, not at the end of the turn."""
        if self._transport is not None and self._gathered:
            gathered, self._gathered = self._gathered, []
            self._size = 0
            self._written = len(self._calls)
            self._transport.writelines(gathered)

    def _enter(self, parts: Sequence[Buffer], groups: list[int], ended: Ended) -> None:
        transport = self._transport
        if transport is None:
            raise PipelineDown(self.why)
        size = sum(map(len, parts))
        if self._size + size + transport.get_write_buffer_size() > UNSENT_LIMIT:
            raise PipelineDown(f"{self.name} does not take what it is sent: {UNSENT_LIMIT >> 20} MiB wait")
        for group in groups:  # joined replies are counted in the order of the calls
            self._replies.join(group)
        due = self._loop.time() + self._timeout
        if not self._gathered:
            self._began = monotonic()
            self._loop.call_soon(self.push)
        self._calls.append(_Call(len(groups), self._began, due, ended))
        self._gathered.extend(parts)
        self._size += size
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._expire)

    def close(self, why: str) -> None:
        """End the connection. Calls under way fail with `PipelineLost`, calls not yet sent with `PipelineDown`."""
        self._end(why)

    def _expire(self) -> None:
        self._timer = None
        if not self._calls:
            return
        due = self._calls[0].due
        if self._loop.time() >= due:
            self.expired = True
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
            # In the loop's next turn: the caller of `close` finishes first.
            self._loop.call_soon(call.ended, [], PipelineLost(why) if number < written else PipelineDown(why))

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(0)  # else uvloop holds writes back until the turn's end

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
        calls, round_trips, now = self._calls, self._round_trips, monotonic()
        for reply in arrived:
            if not calls:
                self._end(f"{self.name} answered more than it was asked")
                return
            call = calls[0]
            call.replies.append(reply)
            if len(call.replies) == call.expected:
                calls.popleft()
                self._written -= 1
                round_trips.count += 1
                round_trips.seconds += now - call.began
                call.ended(call.replies, None)

    def eof_received(self) -> None:
        self._end(f"{self.name} closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._end(f"the connection to {self.name} was lost" + (f": {error}" if error else ""))


def _end(future: "asyncio.Future[list[Buffer]]", replies: list[Buffer], error: StoreError | None) -> None:
    if not future.done():  # else nobody waits any more
        if error is None:
            future.set_result(replies)
        else:
            future.set_exception(error)


class Asking:
    """A pipeline to the node that a slot of a Cluster is moving to.

    The node serves that slot only behind an ASKING, so commands and transactions are sent one by one.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.name = pipeline.name
        self._pipeline = pipeline

    @property
    def up(self) -> bool:
        """As `Pipeline.up`."""
        return self._pipeline.up

    @property
    def asking(self) -> bool:
        """Whether only single commands and transactions can be sent."""
        return True

    def send(self, packed: Buffer, replies: int = 1) -> "asyncio.Future[list[Buffer]]":
        """As `Pipeline.send`, for one command. Raises `PipelineDown` for more: they wait until the slot has moved."""
        if replies != 1:
            raise PipelineDown(f"TRYAGAIN the slot is moving to {self.name}")
        self._ask()
        return self._pipeline.send(packed)

    def post(self, parts: Sequence[Buffer], replies: int, ended: Ended) -> None:
        """As `Pipeline.post`, for one transaction, through which an ASKING before MULTI holds."""
        self._ask()
        self._pipeline.post(parts, replies, ended)

    def _ask(self) -> None:
        asked = self._pipeline.send(_ASKING)
        asked.add_done_callback(lambda ended: ended.exception())  # the command tells what went wrong
