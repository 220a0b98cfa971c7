"""Replies on their way to the peer: handed to the transport in the order of requests, a slice at a time.

Their memory is counted until the transport lets go of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from korvet_fast.net.pool import SMALL, Account, Charge, Pool
from korvet_fast.types import Buffer
from korvet_fast.wire.dialect import Reply

SLICE: Final = 1024 * 1024 + SMALL  # bytes handed over at a time: a fetch of 1 MiB is one slice
TLS_SLICE: Final = 256 * 1024  # the same where they are encrypted first: a quarter of a millisecond of the loop
UNSENT_HIGH: Final = SMALL  # bytes that the transport may keep before it pauses writing; they are not counted
UNSENT_LOW: Final = 16 * 1024
_HEAP: Final = (bytes, bytearray)


def heap_size(reply: Reply) -> int:
    """Bytes of a reply on the heap: all but views of mapped files."""
    return sum(len(part) for part in reply if type(part) is not memoryview or type(part.obj) in _HEAP)


class Slot:
    """A request's place in the order of replies. `charges`: the memory held for its work, then for its reply."""

    __slots__ = ("charges", "cost", "reply", "size")

    def __init__(self) -> None:
        self.reply: Reply | None = None
        self.charges: list[Charge] | None = None
        self.size = 0  # bytes of the reply
        self.cost = 0  # bytes that the request takes while it is at work


class Send:
    """Kafka's NetworkSend. `slots`: the requests whose replies are not handed over yet, in their order.

    `paused_since`: when the transport stopped taking bytes, because the peer takes none; None: it takes bytes.
    `encrypted`: the transport keeps bytes of its own, which it counts itself.
    """

    __slots__ = (
        "_account",
        "_encrypted",
        "_have_turn",
        "_left",
        "_lent",
        "_marked",
        "_marked_at",
        "_parts",
        "_pool",
        "_promised",
        "_seen",
        "_slice",
        "_transport",
        "_waiting",
        "paused_since",
        "slots",
    )

    _transport: asyncio.Transport
    _have_turn: Callable[[], None]

    def __init__(self, pool: Pool, account: Account, *, encrypted: bool = False) -> None:
        self._pool = pool
        self._account = account
        self._waiting = False  # for a turn
        self._encrypted = encrypted
        self._slice = TLS_SLICE if encrypted else SLICE
        self.slots: deque[Slot] = deque()
        self.paused_since: float | None = None
        self._parts: deque[Buffer] = deque()  # parts of a long reply that the transport does not have yet
        self._left = 0  # bytes of `_parts`
        self._lent: list[Charge] = []  # memory of replies that the transport still has
        self._promised: list[Charge] = []  # memory of the long reply
        self._seen = 0  # unsent bytes when the peer last took some
        self._marked = 0  # unsent bytes at `_marked_at`
        self._marked_at = 0.0

    def open(self, transport: asyncio.Transport, have_turn: Callable[[], None]) -> None:
        """Send replies to `transport` from now on. `have_turn`: has `go_on` called in the connection's next turn."""
        self._transport = transport
        self._have_turn = have_turn
        transport.set_write_buffer_limits(UNSENT_HIGH, UNSENT_LOW)

    @property
    def busy(self) -> bool:
        """Whether no other reply can be handed over now."""
        return self.paused_since is not None or bool(self._parts)

    @property
    def unsent(self) -> int:
        """Bytes that the peer has not taken yet."""
        return self._transport.get_write_buffer_size() + self._left

    def send(self, closing: bool) -> None:
        """Hand over the replies that are ready and whose turn it is, a slice in one call; drop them if `closing`."""
        slots = self.slots
        while slots and (first := slots[0].reply) is not None and self.paused_since is None and not self._parts:
            slot = slots.popleft()
            parts, size, charges = first, slot.size, slot.charges
            while slots and (reply := slots[0].reply) is not None and size + slots[0].size <= self._slice:
                slot = slots.popleft()
                size += slot.size
                parts += reply
                if slot.charges is not None:
                    charges = slot.charges if charges is None else charges + slot.charges
            if parts and not closing:
                self.write(parts, size, charges)
            elif charges is not None:
                self._pool.give_back(self._account, charges)

    def write(self, parts: Reply, size: int, charges: list[Charge] | None) -> None:
        """Send `parts` of `size` bytes in all, for which the pool counts `charges`."""
        if size <= self._slice:
            self._transport.writelines(parts)
            if self.paused_since is not None and not self._encrypted:
                self._lend(parts, size, charges or [])
            elif charges is not None:
                self._pool.give_back(self._account, charges)
            return
        self._parts.extend(parts)
        self._left = size
        self._promised = charges or []
        self.go_on()

    def go_on(self) -> None:
        """Hand over the next slice of a long reply.

        A peer that takes each slice at once would keep the loop until the end, so the next one waits for its turn.
        """
        self._waiting = False
        if self._parts and self.paused_since is None:
            self._transport.writelines(self._cut())
            self._wait_for_turn()
        if not self._parts and self._promised:
            charges, self._promised = self._promised, []
            if self.paused_since is None or self._encrypted:
                self._pool.give_back(self._account, charges)
            else:
                self._lent += charges

    def pause(self, now: float) -> None:
        """Note that the transport takes no more."""
        self.paused_since = self._marked_at = now
        self._seen = self._marked = self.unsent

    def resume(self) -> None:
        """Go on: the transport has sent most of its bytes."""
        self.paused_since = None
        self._give_back()
        self._wait_for_turn()

    def drop(self) -> None:
        """Drop all replies: nothing more will be sent."""
        self._parts.clear()
        self._left = 0
        self._lent += self._promised
        self._promised = []
        self._give_back()
        del self._have_turn  # frees memory now, not at the next garbage collection

    def is_stalled(self, now: float, patience: float) -> bool:
        """Whether the peer took nothing for so many seconds."""
        if self.paused_since is None:
            return False
        if (unsent := self.unsent) < self._seen:
            self._seen = unsent
            self.paused_since = now
        return now - self.paused_since > patience

    def is_slow(self, now: float, rate: int, patience: float) -> bool:
        """Whether the peer took less than `rate` bytes a second, for `patience` seconds or more.

        A receiver announces its free space in steps, so up to 64 KiB that it took may not be counted yet.
        """
        seconds = now - self._marked_at
        if self.paused_since is None or seconds < patience:
            return False
        taken = self._marked - self.unsent
        if taken >= rate * seconds:
            self._marked -= taken
            self._marked_at = now
        return taken + SMALL < rate * seconds

    def _wait_for_turn(self) -> None:
        if self._parts and self.paused_since is None and not self._waiting:
            self._waiting = True
            self._have_turn()

    def _lend(self, parts: Reply, size: int, charges: list[Charge]) -> None:
        """Count the part of this reply that the transport keeps."""
        counted = sum(each for _, each in charges)
        if (more := min(size, heap_size(parts)) - counted) > 0:
            self._pool.take(self._account, more)
            self._lent.append((None, more))
        self._lent += charges

    def _give_back(self) -> None:
        charges, self._lent = self._lent, []
        self._pool.give_back(self._account, charges)

    def _cut(self) -> Reply:
        """Take the next slice of a long reply."""
        parts: Reply = []
        room = self._slice
        while self._parts and room:
            part = self._parts.popleft()
            if len(part) > room:
                view = memoryview(part)
                self._parts.appendleft(view[room:])
                part = view[:room]
            parts.append(part)
            room -= len(part)
        self._left -= self._slice - room
        return parts
