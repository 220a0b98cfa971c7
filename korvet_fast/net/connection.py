"""One connection: the straight way from bytes to requests and their replies, and when the socket is read and closed.

A request starts when its frame is complete, even while earlier requests are under way. Most requests end without
waiting: then no task is created, and no memory is counted. Waiting has files of its own: frames for their rest
(`receive`), whole frames for their start, requests for their end (`request_queue`), replies for the peer (`send`).

Reading stops while too much is under way, the peer takes too little, or a large frame waits for memory (`pool`).
"""

import asyncio
from functools import partial
from time import monotonic
from typing import cast

from korvet_fast.core.eager import run_inline
from korvet_fast.core.fair_queue import WAIT_AFTER
from korvet_fast.errors import CodecError
from korvet_fast.net.client import Client
from korvet_fast.net.pool import SMALL, Charge
from korvet_fast.net.receive import Receive
from korvet_fast.net.request_queue import LIGHT, RequestQueue
from korvet_fast.net.send import Send, Slot
from korvet_fast.net.server_context import ServerContext
from korvet_fast.wire.dialect import Dialect
from korvet_fast.wire.dialects import detect_protocol

WINDOW = 256 * 1024  # bytes read at a time, into one buffer shared by all connections of a loop
MOST = 64  # frames cut at a time, so that other connections have their turn
COPIED = 1.5e-10  # seconds that the kernel takes to copy a byte into the window, about
FILLED = 1e-4  # seconds that a read of 64 KiB takes into memory that was not touched yet, about
LIVELY = 0.01  # seconds between two reads of a peer that works request by request
DETECTED = 16  # first bytes, by which another protocol is detected


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one socket. `peer`: the address at the other end; `address`: its address in the quota;
    `session`: the state that its `dialect` has of it.

    `encrypted`: a `TlsTransport` is between the two.
    """

    def __init__(
        self,
        dialect: Dialect,
        context: "ServerContext[Connection]",
        peer: str = "",
        address: str = "",
        *,
        encrypted: bool = False,
    ) -> None:
        self.peer = peer
        self.dialect = dialect
        self._pool = context.pool
        self._queue = context.queue
        self._limits = context.limits
        self._log = context.log
        self._window = context.window
        self._busy_poll = context.busy_poll
        self._greet = context.greet
        self._forget = context.forget
        self._first_request = dialect.first_request
        self._frames = dialect.frames()
        self.account = account = context.pool.open(address)
        self._client = client = Client(context.queue, context.pool, account, encrypted=encrypted)
        self._turns = client.turns
        self.session = dialect.session(peer, client)
        self._out = Send(context.pool, account, encrypted=encrypted)
        self._requests = RequestQueue(self, context, client, self.session, self._out)
        self._rest: memoryview | None = None  # the rest of a large frame, which the socket is read into
        self._read_since = 0.0  # when that read began; monotonic
        self._first = bytearray()  # the first bytes, by which another protocol is detected
        self.greeted = self._asked = self._ending = self._half_closed = self._resting = False
        self._receive = Receive(context.pool, account, self._rest_a_turn)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connected = self._active = monotonic()
        self._receive.go_on(self._active)
        self._out.open(self._transport, partial(self._turns.put_off, self._requests.send_on))

    def get_buffer(self, sizehint: int) -> memoryview:
        self._rest = self._frames.rest() if self._receive.unfinished else None
        if self._rest is not None:
            self._read_since = monotonic()
            return self._rest if self._queue.spent <= WAIT_AFTER else self._rest[:SMALL]
        pool = self._pool
        return self._window if pool.used <= pool.limit else self._window[:SMALL]

    def buffer_updated(self, size: int) -> None:
        requests, receive = self._requests, self._receive
        if requests.closing:
            return None
        now = monotonic()
        if size >= SMALL:
            # Into memory that was not touched yet a read takes ten times as long as into other memory.
            self._queue.count(size * COPIED if self._rest is None else now - self._read_since)
            if self._queue.spent > WAIT_AFTER:
                self._rest_a_turn()
        before, self._active = self._active, now
        if not self.greeted:
            read = self._window if self._rest is None else self._rest
            foreign = _detect_protocol(self._first, read[:size], self.dialect)
            if foreign is not None:
                self._transport.write(self.dialect.farewell)
                return self.hang_up("foreign protocol", foreign)
        try:
            frames = self._take(size)
        except CodecError as error:
            return self.hang_up("frame", str(error))
        if not self.greeted and not self._note_first(frames):
            return None
        charges = None
        if receive.unfinished or self._frames.pending:
            charges = receive.note_read(frames, self._frames, now, more=requests.more)
            if receive.waiting:
                self._regulate()
        if frames:
            # In a turn of the loop that was long already, only a small request starts, of a client that used little.
            frame = frames[0]
            if (
                len(frames) == 1
                and not requests.waiting
                and not self._turns.works
                and (self._queue.spent <= WAIT_AFTER or (len(frame) <= LIGHT and self._turns.is_light(now)))
                and ((len(frame) <= LIGHT and not self._out.slots) or requests.may_start(frame))
            ):
                self.start(frame, charges)
                self._out.send(requests.closing)
            else:
                requests.start_many(frames, charges, now)
        if requests.waiting or requests.more or requests.paused or self._pool.used > self._pool.limit:
            self._regulate()
        now = self._turns.settle(now)
        if now - before < LIVELY:  # a peer that only sends heartbeats is not worth it
            self._busy_poll.prolong(now, len(self._out.slots))
        return None

    def eof_received(self) -> bool:
        # The peer may have closed only its sending half: its requests are answered, without waiting for new records.
        self._ending = self._half_closed = True
        if not self._requests.more:
            self._receive.drop()
        self.session.close()
        self._requests.go_on()
        return not self._requests.closing

    def pause_writing(self) -> None:
        self._out.pause(monotonic())  # reading stops at the next request

    def resume_writing(self) -> None:
        if not self._requests.closing:
            self._out.resume()
            self._requests.go_on()

    def connection_lost(self, error: Exception | None) -> None:
        self._requests.closing = True
        self._pool.forget(self.account, self._regulate)  # first: this connection must not get memory any more
        self._receive.drop()
        self._requests.drop()
        self._forget(self)
        del self._frames, self._receive  # frees memory now, not at the next garbage collection

    # Called by the server

    @property
    def idle_since(self) -> tuple[bool, float] | None:
        """Whether a part of a request has come, and when its last byte did; monotonic. None: requests are under way."""
        out = self._out
        busy = out.slots or self._requests.waiting or out.busy or not self.greeted
        return None if busy else (self._receive.unfinished, self._active)

    def check(self, now: float) -> None:
        """Close the connection if it is over one of its time limits; the server calls this regularly."""
        limits, receive = self._limits, self._receive
        if not self.greeted:
            self._note_first([])  # it may have logged in since
        if self._out.paused_since is not None:
            if self._out.is_stalled(now, limits.stalled):
                self.abort(f"the peer took no byte of its replies for {limits.stalled:g} s")
        elif receive.unfinished or not self.greeted:
            patience = limits.frame if self.greeted else min(self._first_request.seconds, limits.frame, limits.idle)
            patience += receive.announced / limits.rate
            if self._asked and not self.greeted:
                if now - self._connected > patience:
                    self.hang_up("slow", f"it had not logged in after {patience:g} s")
            elif receive.age(now) > patience:
                self.hang_up("slow", f"a request was not complete after {patience:g} s")
        elif self.idle_since is not None and now - self._active > limits.idle:
            self.close()

    def drain(self) -> None:
        """Start no more requests, finish those under way, close."""
        self._ending = True
        self._requests.drop_waiting()
        self.session.close()
        self._requests.go_on()

    def release_memory(self) -> None:
        """Answer requests early that only wait: memory is short.

        A peer that has closed its sending half and waits for memory is taken for gone: others would wait behind its
        requests.
        """
        if self._half_closed and (self._client.waits or self._requests.waits_for_work):
            self.abort()
        else:
            self.session.release_memory()
            if self.account.held:
                self._requests.unmute()  # what it took too much counts at its next request

    def is_slow(self, now: float) -> bool:
        """Whether the peer lately sent or took fewer bytes than a peer must while memory is short."""
        rate, patience = self._limits.rate, self._limits.slow
        return self._out.is_slow(now, rate, patience) or (
            self._receive.unfinished and not self._requests.closing and self._receive.is_slow(now, rate, patience)
        )

    def shed(self) -> None:
        """Close: memory is short, and the peer is slow."""
        if self._out.paused_since is not None:
            self.abort("memory is short, and the peer takes too little of its replies")
        else:
            self.hang_up("shed", "memory is short, and the rest of its request did not come")

    def abort(self, reason: str = "") -> None:
        """Close without finishing anything. `reason`: for the log, if the peer takes no bytes."""
        if reason:
            self._log.warn("stalled", f"closed the connection of {self.peer}: {reason}")
        self._requests.closing = True
        self._transport.abort()

    def hang_up(self, kind: str, reason: str) -> None:
        """Log the reason, and close. `kind`: the log limits the lines of each kind."""
        if not self._requests.closing:
            self._log.warn(kind, f"closed the connection of {self.peer}: {reason}")
            self.close()

    def close(self) -> None:
        """Close once the transport has sent everything that it was given."""
        if not self._requests.closing:
            self._requests.closing = True
            self._receive.drop()
            self._requests.drop_waiting()
            self._transport.close()
            if self._out.paused_since is None:
                self._out.pause(monotonic())  # so that `check` sees whether the peer takes the rest

    # Called by its queue of requests

    def start(self, frame: bytearray, charges: list[Charge] | None) -> None:
        """See `request_queue.Owner`. Nothing of the request keeps this connection: it may outlive it."""
        slot, requests, client = Slot(), self._requests, self._client
        self._out.slots.append(slot)
        if requests.work:
            charges = requests.take_work(frame, charges)
        client.starting = True
        run_inline(self.session.handle(frame), partial(requests.end, slot))
        client.starting = False
        if slot.reply is None:
            requests.note_work(slot, frame, charges)
            return
        client.asked = 0
        if charges is not None:
            self._pool.give_back(self.account, charges)

    def cut_more(self) -> list[bytearray]:
        """See `request_queue.Owner`."""
        requests = self._requests
        try:
            frames = self._frames.feed(b"", MOST)
        except CodecError as error:
            self.hang_up("frame", str(error))
            return []
        requests.more = len(frames) == MOST
        self._receive.note_read(frames, self._frames, self._active, more=requests.more)
        if self._receive.waiting:
            self._regulate()
        return frames

    def settle(self) -> None:
        """See `request_queue.Owner`."""
        requests = self._requests
        if requests.paused or requests.waiting or requests.more or requests.muted is not None or self._ending:
            self._regulate()
        if self._ending and not (self._out.slots or requests.waiting or requests.more or self._out.busy):
            self.close()

    # Reading

    def _take(self, size: int) -> list[bytearray]:
        """The frames that the last read completed. Raises `CodecError`."""
        if self._rest is None:
            frames = self._frames.feed(self._window[:size], MOST)
            self._requests.more = len(frames) == MOST
            return frames
        self._rest = None
        frame = self._frames.advance(size)
        return [] if frame is None else [frame]

    def _rest_a_turn(self) -> None:
        """Read on when this connection has its turn: of those that wait for one, few read in each turn of the loop.

        Hundreds of uploads that had to wait for memory have a megabyte each in the kernel when they may go on.
        """
        if not self._resting:
            self._resting = True
            self._turns.put_off(self._read_on)
            self._regulate()

    def _read_on(self) -> None:
        self._resting = False
        if not self._requests.closing:
            self._queue.expect(FILLED)
            self._regulate()

    def _note_first(self, frames: list[bytearray]) -> bool:
        """Check the first request, whole or in part; all of them until the client has logged in, where it has to.

        False: one is too long, and the connection closes.
        """
        if not (self._asked and self.session.is_authenticated):
            cut, limit = self._frames, self._first_request.size
            sizes = [*map(len, frames), cut.announced or cut.pending]
            size = sizes[0] if self.session.is_authenticated else max(sizes)
            if size > limit:
                self.hang_up("frame", f"its first request has {size} bytes, and may have {limit}")
                return False
            self._asked = self._asked or bool(frames)
        if self._asked and self.session.is_authenticated:
            self.greeted = True
            self._greet(self)
        return True

    def _regulate(self) -> None:
        """Read, or stop reading, as limits, memory and the peer allow."""
        requests = self._requests
        if requests.closing:
            return
        pause = (
            self._ending
            or self._resting
            or requests.muted is not None
            or requests.more
            or self._out.paused_since is not None
            or self._receive.waiting
            # Frames that have a turn in the queue are no reason to stop, unless they are so many that the first of them
            # would have left the processor's cache when its turn comes.
            or (bool(requests.waiting) and (not requests.put_off or self.account.held > SMALL))
            # A large frame has its memory already. Small ones have not, and where each read ends within the next one,
            # the connection would never stop.
            or not (self._receive.announced > SMALL or self._pool.may_read(self.account, self._regulate))
        )
        if pause != requests.paused:
            requests.paused = pause
            if pause:
                self._transport.pause_reading()
                self._receive.pause(monotonic())
            else:
                self._transport.resume_reading()
                self._receive.go_on(monotonic())


def _detect_protocol(first: bytearray, read: memoryview, dialect: Dialect) -> str | None:
    """Add the bytes that were read to the first ones; see `detect_protocol`."""
    if len(first) == DETECTED:
        return None  # as the last time
    first += read[: DETECTED - len(first)]
    return detect_protocol(bytes(first), dialect)
