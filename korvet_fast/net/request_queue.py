"""The requests of one connection that wait: frames for their start, requests under way for their end.

A read starts requests for about a millisecond; the other frames wait for a turn (`core.fair_queue`). A request that did
not end at once is counted with its cost until it ends, and may outlive its connection, freed when the peer goes.
"""

import asyncio
from collections import deque
from time import monotonic
from typing import Any, Protocol

from korvet_fast.core.fair_queue import SLICE as TIME_SLICE
from korvet_fast.core.fair_queue import WAIT_AFTER
from korvet_fast.net.client import Client
from korvet_fast.net.pool import SMALL, Charge
from korvet_fast.net.send import Send, Slot, heap_size
from korvet_fast.net.server_context import ServerContext
from korvet_fast.wire.dialect import CloseConnection, Reply, Session

LIGHT = 2048  # bytes; for a frame up to this size the session is not asked for the cost
UNEXPECTED = "a request of %s ended in an unexpected error; its connection is closed"


class Owner(Protocol):
    """The connection that has this queue."""

    def start(self, frame: bytearray, charges: list[Charge] | None) -> None:
        """Start a request. `charges`: the memory held for its frame; None: none."""

    def cut_more(self) -> list[bytearray]:
        """Cut more frames from bytes that were read already. Called while `RequestQueue.more` is set; updates it."""

    def settle(self) -> None:
        """Read on, stop reading, or close: requests have ended, or were started."""

    def hang_up(self, kind: str, reason: str) -> None:
        """Log the reason, and close."""

    def drain(self) -> None:
        """Start no more requests, finish those under way, close."""

    def close(self) -> None:
        """Close once the transport has sent everything that it was given."""

    @property
    def peer(self) -> str:
        """The address of the client, for the log."""


class RequestQueue:
    """Has requests started as limits, memory and turns allow, and counts those under way.

    The connection sets the flags.

    `waiting`: whole frames that are not started yet. `more`: the connection can cut more frames from what it read.
    `paused`: the connection does not read. `closing`: nothing new is started or sent. `lost`: the peer is gone.
    `work`: bytes held for the work of the first waiting frame. `muted`: ends the time in which nothing is started,
    because the client took more than its quotas allow; None: there is none.
    """

    __slots__ = (
        "_account",
        "_client",
        "_limits",
        "_log",
        "_loop",
        "_out",
        "_owner",
        "_pool",
        "_queue",
        "_read",
        "_sending",
        "_session",
        "_turns",
        "_work_asked",
        "_working",
        "closing",
        "lost",
        "more",
        "muted",
        "paused",
        "put_off",
        "waiting",
        "work",
    )

    def __init__(self, owner: Owner, context: ServerContext[Any], client: Client, session: Session, out: Send) -> None:
        self._owner = owner
        self._pool = context.pool
        self._limits = context.limits
        self._queue = context.queue
        self._loop = asyncio.get_running_loop()
        self._account = client.account
        self._client = client
        self._log = context.log
        self._turns = client.turns
        self._session = session
        self._out = out
        self.waiting: deque[tuple[bytearray, list[Charge], float]] = deque()
        self._read = 0.0  # when the frames that come to wait were read: while there are `more`, nothing else is
        self._working = 0  # cost of the requests at work
        self.work = 0
        self._work_asked = 0  # bytes that the pool will grant for the first waiting frame
        self.closing = self.lost = self.more = self.paused = False
        self._sending = False  # `_send_finished` is called in the next turn of the loop
        self.put_off = False  # the waiting frames have a turn in the queue
        self.muted: asyncio.TimerHandle | None = None
        client.muting = self.mute

    @property
    def waits_for_work(self) -> bool:
        """Whether the first waiting frame waits for the memory that it decodes into."""
        return self._work_asked > 0

    # Starting

    def start_many(self, frames: list[bytearray], charges: list[Charge] | None, now: float) -> None:
        """Start frames that were just read, after those that wait. `charges`: the memory held for the first."""
        self._read = now
        until = now + TIME_SLICE
        started, blocked = 0, bool(self.waiting)
        if not blocked and self._queue.spent <= WAIT_AFTER and not self._turns.works:
            for frame in frames:
                if not self.may_start(frame):
                    self._out.send(self.closing)  # sending the replies that are ready may make room
                    blocked = self.closing or not self.may_start(frame)
                    if blocked:
                        break
                self._owner.start(frame, charges)
                charges = None
                started += 1
                if self.closing or self._turns.works or monotonic() >= until:
                    break
            self._out.send(self.closing)
        if started < len(frames):
            self._wait(frames[started:], charges)
        if (self.waiting or self.more) and not (blocked or self.put_off):
            self._queue_up()

    def go_on(self) -> None:
        """Go on after a request ended: send ready replies, start waiting frames, tell the connection."""
        self._out.send(self.closing)
        if (self.waiting or self.more) and not self.put_off and not self.closing:
            now = monotonic()
            if not self._turns.must_wait(now):
                self._start_waiting(now)
                self._turns.settle(now)
            elif not self.waiting or self.may_start(self.waiting[0][0]):
                self._queue_up()
        self._owner.settle()

    def send_on(self) -> None:
        """Send the next slice of a long reply: it is this connection's turn."""
        if not self.closing:
            self._out.go_on()
            self.go_on()

    def may_start(self, frame: bytearray) -> bool:
        """Whether there is room for this request. If the pool has none, the request gets a turn when there is room."""
        if self._out.busy or self.muted is not None:
            return False
        size, under_way, limits = len(frame), len(self._out.slots), self._limits
        if under_way >= limits.requests:
            return False
        if size <= LIGHT and not self._working:
            return True
        cost = self._session.cost(frame)
        if under_way and self._working + cost > limits.request_bytes:
            return False
        if cost - size <= SMALL or self.work:
            return True
        if self._work_asked:
            return False
        work = cost - size
        if self._pool.reserve(self._account, self._pool.of_work(work), work, self._have_work_granted):
            self.work = work
            return True
        self._work_asked = work
        return False

    def mute(self, seconds: float) -> None:
        """Start nothing for so long, from now on. A time that ends later already stands."""
        if self.lost or (self.muted is not None and self.muted.when() >= self._loop.time() + seconds):
            return
        if self.muted is not None:
            self.muted.cancel()
        self.muted = self._loop.call_later(seconds, self.unmute)
        self._owner.settle()

    def unmute(self) -> None:
        """Go on: the time is over, or memory is short and what waits here holds some of it."""
        if self.muted is not None:
            self.muted.cancel()
            self.muted = None
            self.go_on()

    def drop_waiting(self) -> None:
        """Drop the frames that wait: they are never started."""
        for _, charges, _ in self.waiting:
            self._pool.give_back(self._account, charges)
        self.waiting.clear()
        self.more = False
        if self.work:
            self._pool.give_back(self._account, [(self._pool.of_work(self.work), self.work)])
            self.work = 0

    def drop(self) -> None:
        """Drop everything: the connection is lost. Requests at work still end, and are not answered."""
        self.closing = self.lost = True
        if self.muted is not None:
            self.muted.cancel()
            self.muted = None
        self.drop_waiting()
        for slot in self._out.slots:
            if slot.reply is not None and slot.charges is not None:
                self._pool.give_back(self._account, slot.charges)
        self._out.slots.clear()
        self._out.drop()
        self._client.cancel()
        self._session.close()
        del self._owner  # frees memory now, not at the next garbage collection

    def _wait(self, frames: list[bytearray], charges: list[Charge] | None) -> None:
        """Queue these frames; `charges`: the memory held for the first."""
        for frame in () if self.closing else frames:
            self.waiting.append((frame, charges or self._pool.count(self._account, len(frame)), self._read))
            charges = None
        self._pool.give_back(self._account, charges or ())

    def _start_waiting(self, now: float, *, in_turn: bool = False) -> None:
        """Start frames that wait, as long as limits, memory and time allow. `in_turn`: called by the `FairQueue`.

        While a request waits for its turn, those behind it are not started: they would only take memory.
        """
        until = now + TIME_SLICE
        waiting, works = self.waiting, self._turns.works
        while not self.closing and (waiting or self._refill()):
            if len(works) > in_turn:
                self._queue_up()
                break
            if not self.may_start(waiting[0][0]):
                self._out.send(self.closing)  # sending the replies that are ready may make room
                if self.closing or not self.may_start(waiting[0][0]):
                    break
            frame, charges, read = waiting.popleft()
            self._session.note_wait(frame, now - read)
            self._owner.start(frame, charges)
            if (waiting or self.more) and (now := monotonic()) >= until:
                self._queue_up()
                break
        self._out.send(self.closing)

    def _refill(self) -> bool:
        """Cut more frames from bytes that were read already; False: there are none."""
        frames = self._owner.cut_more() if self.more else []
        self._wait(frames, None)
        return bool(frames)

    def _queue_up(self) -> None:
        self.put_off = True
        self._turns.put_off(self._take_turn)

    def _take_turn(self) -> None:
        self.put_off = False
        if not self.closing:
            self._start_waiting(monotonic(), in_turn=True)
            self._owner.settle()

    def _have_work_granted(self) -> None:
        self.work, self._work_asked = self._work_asked, 0
        if not self.put_off:
            self._queue_up()

    # Under way

    def take_work(self, frame: bytearray, charges: list[Charge] | None) -> list[Charge]:
        """The memory held for a frame that starts now, `work` included. `charges`: the frame's; None: none yet."""
        size, self.work = self.work, 0
        return [*(charges or self._pool.count(self._account, len(frame))), (self._pool.of_work(size), size)]

    def note_work(self, slot: Slot, frame: bytearray, charges: list[Charge] | None) -> None:
        """Count the cost of a request that did not end at once."""
        slot.cost = cost = self._session.cost(frame)
        self._working += cost
        if charges is None:
            charges = self._pool.count(self._account, cost)
        elif cost > len(frame) and len(charges) == 1:  # only the frame is counted yet
            charges += self._pool.count(self._account, cost - len(frame))
        slot.charges = charges
        self._client.hold_room()

    def end(self, slot: Slot, reply: Reply | None, error: BaseException | None) -> None:
        """End a request, with its reply or with the error that it raised."""
        client = self._client
        slot.reply = reply = reply or []
        if error is not None:
            slot.reply = reply = self._fail(error)
        if (held := slot.charges) is not None:
            slot.charges = None
            self._working -= slot.cost
            client.free_room()
        if client.released:
            held = [*(held or ()), *client.take_released()]
        slot.size = size = len(reply[0]) if len(reply) == 1 else sum(map(len, reply))
        heap = heap_size(reply) if size > SMALL and not self.lost else 0
        if heap:
            kind = self._pool.of_answer(heap)
            self._pool.exchange(self._account, held or (), kind, heap)
            slot.charges = [(kind, heap)]
        elif held is not None:
            self._pool.give_back(self._account, held)
        if self.lost:
            return
        if size > SMALL:
            if client.starting:
                self._out.send(self.closing)  # a long reply: the peer must take it before more requests start
        elif size and slot is not self._out.slots[0]:
            slot.charges = self._pool.count(self._account, size)  # the reply waits for earlier ones
        if not client.starting and not self._sending:
            if len(self._out.slots) == 1:
                self._send_finished()
            else:
                self._sending = True  # requests that wait for the same thing end in the same turn: one call sends all
                self._loop.call_soon(self._send_finished)

    def _fail(self, error: BaseException) -> Reply:
        """Close the connection; returns the last answer, if there is one."""
        if isinstance(error, CloseConnection):
            if error.reply is not None:
                self._loop.call_soon(self._finish, str(error))
                return error.reply
            if not self.closing:
                self._owner.hang_up("protocol", str(error))
        elif not (self.lost and isinstance(error, asyncio.CancelledError)):
            self._log.error("unexpected", UNEXPECTED % self._owner.peer, error)
            if not self.closing:
                self._owner.close()
        return []

    def _finish(self, reason: str) -> None:
        if not (self.lost or self.closing):
            if reason:
                self._log.warn("protocol", f"closes the connection of {self._owner.peer} after a last answer: {reason}")
            self._owner.drain()

    def _send_finished(self) -> None:
        self._sending = False
        if not self.lost:
            self._out.send(self.closing)
            if self.paused:  # the connection is paused when anything waits for more than its turn
                self.go_on()
