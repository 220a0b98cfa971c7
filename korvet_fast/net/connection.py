"""One connection: bytes in, frames to the dialect, replies out in the order of requests.

A request starts the moment its frame is complete, even while earlier ones are under way. Most finish without waiting
for anything: then no task is made. Reading stops while too much is under way or the peer takes too little.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from korvet_fast.core.eager import run
from korvet_fast.errors import CodecError
from korvet_fast.net.limits import Limits
from korvet_fast.net.pool import Pool
from korvet_fast.net.quiet import Quiet
from korvet_fast.net.wakefulness import Wakefulness
from korvet_fast.wire.dialect import Dialect, Hangup, Reply

log = logging.getLogger(__name__)

WINDOW = 256 * 1024  # bytes read at a time, into one buffer shared by all connections of a loop
UNEXPECTED = "a request of %s ended in an unexpected error; its connection is closed"
LIVELY = 0.01  # seconds between two reads of a peer that works request by request
UNSENT_HIGH, UNSENT_LOW = 1024 * 1024, 256 * 1024  # bytes the peer has not taken: stop and go on starting requests


class Shared(NamedTuple):
    """What the connections of one server share."""

    window: memoryview
    pool: Pool
    limits: Limits
    quiet: Quiet
    wakefulness: Wakefulness
    gone: "Callable[[Connection], None]"


class _Slot:
    """A request's place in the order of replies. `weight`: what the pool counts for it until its reply is sent."""

    __slots__ = ("reply", "weight")

    def __init__(self, weight: int) -> None:
        self.reply: Reply | None = None
        self.weight = weight


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one socket. `peer`: the address at the other end, where it is known."""

    def __init__(self, dialect: Dialect, shared: Shared, peer: str = "") -> None:
        self.peer = peer
        self._dialect = dialect
        self._session = dialect.session(peer)
        self._window = shared.window
        self._pool = shared.pool
        self._limits = shared.limits
        self._quiet = shared.quiet
        self._wakefulness = shared.wakefulness
        self._gone = shared.gone
        self._loop = asyncio.get_running_loop()
        self._frames = dialect.frames()
        self._slots: deque[_Slot] = deque()
        self._waiting: deque[bytearray] = deque()  # whole frames not started yet
        self._working = 0  # weight of the requests started and not answered
        self._unfinished = 0  # bytes of the frame that is still arriving
        self._rest: memoryview | None = None  # the place in it that is read into
        self._spoken = self._closing = self._lost = self._ending = self._paused = False
        self._starting = self._sending = False
        self._active = self._loop.time()
        self._frame_began: float | None = None
        self._choked: float | None = None  # since when the peer takes nothing
        self._unsent = 0  # bytes that wait for the peer, as counted by the pool

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(UNSENT_HIGH, UNSENT_LOW)

    def get_buffer(self, sizehint: int) -> memoryview:
        self._rest = self._frames.rest() if self._unfinished else None
        return self._window if self._rest is None else self._rest

    def buffer_updated(self, size: int) -> None:
        if self._closing:
            return None
        before, self._active = self._active, self._loop.time()
        if not self._spoken:
            self._spoken = True
            if (other := self._dialect.mistaken(bytes(self._window[: min(size, 16)]))) is not None:
                return self._hang_up("mistaken", other)
        try:
            frames = self._take(size)
        except CodecError as error:
            return self._hang_up("frame", str(error))
        self._note_unfinished(self._frames.pending, bool(frames))
        for frame in frames:
            if self._closing:
                break
            weight = self._session.weigh(frame)
            if self._waiting or not self._has_room(weight):
                self._pool.take(len(frame))
                self._waiting.append(frame)
            else:
                self._start(frame, weight)
        self._send()
        self.go_on()  # requests that ended at once have made room for those that wait
        if self._active - before < LIVELY:
            self._wakefulness.prolong()  # for one that only sends a heartbeat now and then it would be a waste
        return None

    def _take(self, size: int) -> list[bytearray]:
        """The frames that are whole with what was read last. Raises `CodecError`."""
        if self._rest is None:
            return self._frames.feed(self._window[:size])
        self._rest = None
        frame = self._frames.advance(size)
        return [] if frame is None else [frame]

    def eof_received(self) -> bool:
        # The peer may only have closed its sending half: what it asked is answered, without waiting for anything new.
        self._ending = True
        self._note_unfinished(0, False)
        self._session.close()
        self.go_on()
        return not self._closing

    def pause_writing(self) -> None:
        self._choked = self._loop.time()
        self._note_unsent(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if not self._closing:
            self._choked = None
            self._note_unsent(0)
            self.go_on()

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = self._lost = True
        self._note_unfinished(0, True)
        self._note_unsent(0)
        self._drop_waiting()
        self._pool.forget(self)
        for slot in self._slots:
            if slot.reply is not None:
                self._pool.end(slot.weight)
        self._slots.clear()
        self._session.close()
        self._gone(self)

    # Called by the server

    def check(self, now: float) -> None:
        """Close the connection if its time is up; called every now and then."""
        if self._choked is not None:
            self._check_choked(now, self._limits.stalled)
        elif self._frame_began is not None and now - self._frame_began > self._limits.frame:
            self._hang_up("slow", f"a request was not complete after {self._limits.frame:g} s")
        elif not self._slots and now - self._active > self._limits.idle:
            self._close()

    def drain(self) -> None:
        """Start nothing more, finish what is under way, close."""
        self._ending = True
        self._drop_waiting()
        self._session.close()
        self.go_on()

    def hurry(self, now: float, *, shed: bool) -> None:
        """Memory is short: hold as little of it as possible. `shed`: also give up a request that does not arrive."""
        self._session.hurry()
        if self._choked is not None:
            self._check_choked(now, self._limits.hurried)
        elif shed and self.is_silent(now):
            self._hang_up("shed", "memory is short, and the rest of its request did not come")

    def is_silent(self, now: float) -> bool:
        """Whether a request has begun to arrive, and nothing of it came for a while."""
        return self._unfinished > 0 and now - self._active > self._limits.hurried

    def abort(self) -> None:
        """Close without finishing anything."""
        self._closing = True
        self._transport.abort()

    def go_on(self) -> None:
        """After something ended: start what waited for room, read on if that is allowed."""
        while self._waiting and not self._closing:
            weight = self._session.weigh(self._waiting[0])
            if not self._has_room(weight):
                break
            frame = self._waiting.popleft()
            self._pool.take(-len(frame))
            self._start(frame, weight)
            self._send()
        self._regulate()
        if self._ending and not self._slots and not self._waiting:
            self._close()

    def _regulate(self) -> None:
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

    def _has_room(self, weight: int) -> bool:
        limits = self._limits
        if self._choked is not None or (
            self._slots and (len(self._slots) >= limits.requests or self._working + weight > limits.request_bytes)
        ):
            return False
        if self._pool.has_room(weight):
            return True
        self._pool.wait(self)
        return False

    def _start(self, frame: bytearray, weight: int) -> None:
        slot = _Slot(weight)
        self._working += weight
        self._pool.begin(weight)
        self._slots.append(slot)
        self._starting = True
        run(self._session.handle(frame), partial(self._end, slot))
        self._starting = False

    def _end(self, slot: _Slot, reply: Reply | None, error: BaseException | None) -> None:
        """The request is over: its reply, or why there is none."""
        slot.reply = reply = reply or []
        if isinstance(error, Hangup):
            self._hang_up("protocol", str(error))
        elif error is not None:
            log.error(UNEXPECTED, self.peer, exc_info=error)
            self._close()
        if self._lost:
            self._pool.end(slot.weight)
            return
        self._note_reply(slot)
        if not self._starting:
            if not self._sending:
                # Requests that wait for the same thing end in the same turn of the loop: one call sends all replies.
                self._sending = True
                self._loop.call_soon(self._send_finished)
        elif len(reply) > 1:
            self._send()  # it is long: let the transport say whether the peer takes it before more is started

    def _send_finished(self) -> None:
        self._sending = False
        if not self._lost:
            self._send()
            self.go_on()

    def _note_reply(self, slot: _Slot) -> None:
        """A reply that must wait for the ones before it takes memory as well."""
        if slot.reply and slot is not self._slots[0]:
            size = sum(map(len, slot.reply))
            slot.weight += size
            self._working += size
            self._pool.begin(size)

    def _send(self) -> None:
        """Hand over all replies that are ready and whose turn it is, in one call."""
        slots = self._slots
        parts: Reply = []
        done = 0
        while slots and (reply := slots[0].reply) is not None:
            done += slots.popleft().weight
            parts += reply
        if parts and not self._closing:
            self._transport.writelines(parts)
        if done:
            self._working -= done
            self._pool.end(done)

    # Accounts and endings

    def _note_unfinished(self, pending: int, began: bool) -> None:
        self._pool.take(pending - self._unfinished)
        self._unfinished = pending
        if not pending:
            self._frame_began = None
        elif began or self._frame_began is None:
            self._frame_began = self._active

    def _note_unsent(self, unsent: int) -> None:
        self._pool.take(unsent - self._unsent)
        self._unsent = unsent

    def _check_choked(self, now: float, patience: float) -> None:
        """Cut off a peer that took nothing of its replies for so many seconds."""
        assert self._choked is not None
        unsent = self._transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._choked = now
            self._note_unsent(unsent)
        elif now - self._choked > patience:
            self._hang_up("stalled", f"the peer took no byte of its replies for {patience:g} s")
            self.abort()  # there is nobody to flush to

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
