"""One connection: bytes in, frames to the dialect, replies out in the order of requests.

A request starts the moment its frame is complete, even while earlier ones are under way. Most finish without waiting
for anything: then no task is made. Reading stops while too much is under way or the peer takes too little.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, NamedTuple, cast

from korvet_fast.errors import CodecError
from korvet_fast.net.pool import Pool
from korvet_fast.net.quiet import Quiet
from korvet_fast.wire.dialect import Dialect, Hangup, Reply

log = logging.getLogger(__name__)

WINDOW = 256 * 1024  # bytes read at a time, into one buffer shared by all connections of a loop
UNEXPECTED = "a request of %s ended in an unexpected error; its connection is closed"
UNSENT_HIGH, UNSENT_LOW = 1024 * 1024, 256 * 1024  # bytes the peer has not taken: stop and go on starting requests


class Limits(NamedTuple):
    """What one connection may use. Times in seconds."""

    requests: int = 64  # under way at once
    request_bytes: int = 64 * 1024 * 1024  # in requests under way; one larger request alone is allowed
    idle: float = 600.0  # connections.max.idle.ms: without a byte from the peer and without work for it
    frame: float = 30.0  # from the first byte of a request to its last
    stalled: float = 30.0  # replies wait, and the peer takes none of them


class Shared(NamedTuple):
    """What the connections of one server share."""

    window: memoryview
    pool: Pool
    limits: Limits
    quiet: Quiet
    gone: "Callable[[Connection], None]"


class _Slot:
    """A request's place in the order of replies."""

    __slots__ = ("reply", "size")

    def __init__(self, size: int) -> None:
        self.reply: Reply | None = None
        self.size = size


@coroutine
def _resume(started: Coroutine[Any, Any, Reply], waits_for: object) -> Generator[Any, Any, Reply]:
    """Go on inside a task with a coroutine that was started outside of one and waits for a future."""
    if isinstance(waits_for, asyncio.Future):
        waits_for._asyncio_future_blocking = True  # see `_start`
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, a cancellation too, it is meant for `started`
                waits_for = started.throw(error)
            else:
                waits_for = started.send(sent)
    except StopIteration as end:
        return cast(Reply, end.value)


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one socket."""

    def __init__(self, dialect: Dialect, shared: Shared) -> None:
        self._dialect = dialect
        self._window = shared.window
        self._pool = shared.pool
        self._limits = shared.limits
        self._quiet = shared.quiet
        self._gone = shared.gone
        self._loop = asyncio.get_running_loop()
        self._frames = dialect.frames()
        self._slots: deque[_Slot] = deque()
        self._waiting: deque[bytearray] = deque()  # whole frames not started yet
        self._tasks: set[asyncio.Task[None]] = set()
        self._working = 0  # bytes of requests started and not answered
        self._unfinished = 0  # bytes of the frame that is still arriving
        self._spoken = self._closing = self._lost = self._ending = self._paused = False
        self._active = self._loop.time()
        self._frame_began: float | None = None
        self._choked: float | None = None  # since when the peer takes nothing
        self._unsent = 0

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(UNSENT_HIGH, UNSENT_LOW)
        peer = self._transport.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else ""
        self._session = self._dialect.session(self.peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._window

    def buffer_updated(self, size: int) -> None:
        if self._closing:
            return None
        data = self._window[:size]
        self._active = self._loop.time()
        if not self._spoken:
            self._spoken = True
            if (other := self._dialect.mistaken(bytes(data[:16]))) is not None:
                return self._hang_up("mistaken", other)
        try:
            frames = self._frames.feed(data)
        except CodecError as error:
            return self._hang_up("frame", str(error))
        self._note_unfinished(self._frames.pending, bool(frames))
        for frame in frames:
            if self._closing:
                break
            self._pool.take(len(frame))
            if self._waiting or not self._has_room(len(frame)):
                self._waiting.append(frame)
            else:
                self._start(frame)
        self._send()
        self.regulate()
        return None

    def eof_received(self) -> bool:
        # The peer may only have closed its sending half: what it asked is answered, without waiting for anything new.
        self._ending = True
        self._note_unfinished(0, False)
        self._session.close()
        self._go_on()
        return not self._closing

    def pause_writing(self) -> None:
        self._choked = self._loop.time()
        self._unsent = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self._choked = None
        self._go_on()

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = self._lost = True
        self._note_unfinished(0, True)
        self._drop_waiting()
        for slot in self._slots:
            if slot.reply is not None:
                self._pool.take(-slot.size)
        self._slots.clear()
        self._pool.forget(self)
        self._session.close()
        self._gone(self)

    # Called by the server

    def check(self, now: float) -> None:
        """Close the connection if its time is up; called every now and then."""
        if self._choked is not None:
            unsent = self._transport.get_write_buffer_size()
            if unsent < self._unsent:
                self._choked, self._unsent = now, unsent
            elif now - self._choked > self._limits.stalled:
                self._hang_up("stalled", f"the peer took no byte of its replies for {self._limits.stalled:g} s")
                self.abort()  # there is nobody to flush to
        elif self._frame_began is not None and now - self._frame_began > self._limits.frame:
            self._hang_up("slow", f"a request was not complete after {self._limits.frame:g} s")
        elif not self._slots and now - self._active > self._limits.idle:
            self._close()

    def drain(self) -> None:
        """Start nothing more, finish what is under way, close."""
        self._ending = True
        self._drop_waiting()
        self._session.close()
        self._go_on()

    def abort(self) -> None:
        """Close without finishing anything."""
        self._closing = True
        self._transport.abort()

    def regulate(self) -> None:
        """Read, or stop reading, as limits and the peer's own reading allow."""
        if self._closing:
            return
        pause = (
            self._ending
            or bool(self._waiting)
            or self._choked is not None
            or not self._pool.admits(self, unfinished=self._unfinished > 0)
        )
        if pause != self._paused:
            self._paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # One request

    def _has_room(self, size: int) -> bool:
        return self._choked is None and (
            not self._slots
            or (len(self._slots) < self._limits.requests and self._working + size <= self._limits.request_bytes)
        )

    def _start(self, frame: bytearray) -> None:
        slot = _Slot(len(frame))
        self._working += slot.size
        self._slots.append(slot)
        work = self._session.handle(frame)
        try:
            waits_for = work.send(None)
        except StopIteration as end:
            slot.reply = reply = cast(Reply, end.value)
        except Hangup as reason:
            slot.reply = reply = []
            self._hang_up("protocol", str(reason))
        except Exception:
            slot.reply = reply = []
            log.exception(UNEXPECTED, self.peer)
            self._close()
        else:
            if isinstance(waits_for, asyncio.Future):
                # `await` marks the future, and the task that gets it takes the mark off. The task comes a moment later,
                # and until then others must be able to await the same future.
                waits_for._asyncio_future_blocking = False
            task = self._loop.create_task(self._finish(slot, work, waits_for))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        if len(reply) > 1:
            self._send()  # a long reply: the transport must say whether the peer takes it before the next is started

    async def _finish(self, slot: _Slot, work: Coroutine[Any, Any, Reply], waits_for: object) -> None:
        try:
            slot.reply = await _resume(work, waits_for)
        except Hangup as reason:
            self._hang_up("protocol", str(reason))
        except Exception:
            log.exception(UNEXPECTED, self.peer)
            self._close()
        finally:
            if slot.reply is None:
                slot.reply = []
            if self._lost:
                self._pool.take(-slot.size)
        if not self._lost:
            self._send()
            self._go_on()

    def _send(self) -> None:
        """Hand over all replies that are ready and whose turn it is, in one call."""
        slots = self._slots
        parts: Reply = []
        done = 0
        while slots and (reply := slots[0].reply) is not None:
            done += slots.popleft().size
            parts += reply
        if parts and not self._closing:
            self._transport.writelines(parts)
        if done:
            self._working -= done
            self._pool.take(-done)

    def _go_on(self) -> None:
        """After something ended: start what waited for room."""
        while self._waiting and not self._closing and self._has_room(len(self._waiting[0])):
            self._start(self._waiting.popleft())
            self._send()
        self.regulate()
        if self._ending and not self._slots and not self._waiting:
            self._close()

    # Accounts and endings

    def _note_unfinished(self, pending: int, began: bool) -> None:
        self._pool.take(pending - self._unfinished)
        self._unfinished = pending
        if not pending:
            self._frame_began = None
        elif began or self._frame_began is None:
            self._frame_began = self._active

    def _drop_waiting(self) -> None:
        while self._waiting:
            self._pool.take(-len(self._waiting.popleft()))

    def _hang_up(self, kind: str, reason: str) -> None:
        if not self._closing:
            self._quiet.warn(kind, f"closed the connection of {self.peer}: {reason}")
            self._close()

    def _close(self) -> None:
        """Close once what was handed to the transport is sent."""
        if not self._closing:
            self._closing = True
            self._transport.close()
            if self._choked is None:
                self.pause_writing()  # so that `check` sees whether the peer takes the rest
