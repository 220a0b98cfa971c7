"""`queued.max.request.bytes`: the memory for requests and answers of all connections, shared fairly among them.

Memory of at most 64 KiB is only counted: a small client never waits. A larger piece is reserved before it is filled,
and waits for room of its kind. There are three kinds of up to a sixteenth of the limit each:

- *frames* that arrive, wait or are at work; half of the limit is theirs alone;
- *work*, the values that requests decode into, and *answers* on the heap; an eighth each is theirs alone.

A larger piece is of a kind of its own: *large* frames, work or answers. No part of the limit is theirs alone, and they
have lines of their own: nobody else waits behind them.

All kinds share the last quarter, first come, first served. A large kind gets one reservation of any size while it has
no other. So the pool holds at most the limit, one reservation of each of the three large kinds, and the small pieces.

Nobody waits for ever. A connection that holds frames may wait for work and answers, one that holds work only for
answers, and one that holds answers waits for no memory: the peer takes them, or is cut off. So answers are given back
in the end, then work, then frames. The first in the line of a kind keeps that place until there is room. The lines take
turns by address, then by connection. A connection that holds more than a sixteenth of the limit is passed over by those
that hold less, sixteen times at most.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

SMALL: Final = 64 * 1024  # a piece of so many bytes does not wait
_PATIENCE: Final = 16  # how often a connection that holds much is passed over


class AddressAccount:
    """The bytes that all connections of one address hold."""

    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.held = 0


class Account:
    """The bytes that one connection holds."""

    __slots__ = ("address", "held")

    def __init__(self, address: AddressAccount) -> None:
        self.address = address
        self.held = 0


class _Waiter(NamedTuple):
    account: Account
    size: int
    grant: Callable[[], None]


class Kind:
    """One kind of memory, and the line of connections that wait for it.

    `share`: bytes that no other kind takes. A large kind has none; one reservation may be of any size, while there is
    no other.
    """

    def __init__(self, share: int, fair: int) -> None:
        self.share = share
        self.used = 0
        self._fair = fair
        self._line: OrderedDict[AddressAccount, OrderedDict[Account, deque[_Waiter]]] = OrderedDict()
        self._first: _Waiter | None = None  # the waiter whose turn it is, until there is room for it
        self._passed = 0  # how often the first of the line was passed over

    def __bool__(self) -> bool:
        """Whether a connection waits."""
        return bool(self._line)

    @property
    def beyond(self) -> int:
        """Bytes that this kind takes beyond its share."""
        return self.used - self.share if self.used > self.share else 0

    def add(self, waiter: _Waiter) -> None:
        """Put a waiter at the end of the line."""
        connections = self._line.setdefault(waiter.account.address, OrderedDict())
        connections.setdefault(waiter.account, deque()).append(waiter)

    def first(self) -> _Waiter:
        """The waiter whose turn it is."""
        if self._first is None:
            self._first = self._choose()
        return self._first

    def pop(self) -> None:
        """Remove the first waiter: its connection and its address go to the end of the line."""
        assert self._first is not None
        account, self._first = self._first.account, None
        connections = self._line.pop(account.address)
        waiters = connections.pop(account)
        waiters.popleft()
        if waiters:
            connections[account] = waiters
        if connections:
            self._line[account.address] = connections

    def forget(self, account: Account) -> None:
        """Take a connection out of the line."""
        connections = self._line.get(account.address)
        if connections is None or connections.pop(account, None) is None:
            return
        if not connections:
            del self._line[account.address]
        if self._first is not None and self._first.account is account:
            self._first = None

    def _choose(self) -> _Waiter:
        # Few connections can hold more than a sixteenth each, so these searches are short.
        oldest = next(iter(self._line))
        address = oldest
        if self._passed < _PATIENCE:
            address = next((one for one in self._line if one.held <= self._fair), oldest)
        connections = self._line[address]
        account = longest = next(iter(connections))
        if self._passed < _PATIENCE:
            account = next((one for one in connections if one.held <= self._fair), longest)
        passed = address is not oldest or account is not longest
        self._passed = self._passed + 1 if passed else 0
        return connections[account][0]


Charge = tuple[Kind | None, int]  # bytes that a connection holds, and their kind; None: they are only counted


class Pool:
    """The pool. `relieve` is called when a connection has to wait, and when more than the limit is held."""

    def __init__(self, limit: int, relieve: Callable[[], None]) -> None:
        self.limit = limit
        self.fair = limit // 16
        self.used = 0  # all bytes held, including those that are only counted
        self.frames, self.large_frames = Kind(limit // 2, self.fair), Kind(0, self.fair)
        self.work, self.large_work = Kind(limit // 8, self.fair), Kind(0, self.fair)
        self.answers, self.large_answers = Kind(limit // 8, self.fair), Kind(0, self.fair)
        self._kinds = (
            *(self.answers, self.large_answers),
            *(self.work, self.large_work),
            *(self.frames, self.large_frames),
        )
        self._common = limit // 4
        self._roomy = limit // 4  # while the pool holds no more, an answer may take a sixteenth or two
        self._relieve = relieve
        self._addresses: WeakValueDictionary[str, AddressAccount] = WeakValueDictionary()
        self._readers: dict[Callable[[], None], None] = {}
        self._waiting = False  # a connection waits: for memory, or to read on
        self._granting = self._again = False

    @property
    def short(self) -> bool:
        """Whether a connection waits, or more than the limit is held."""
        return self._waiting or self.used > self.limit

    def open(self, address: str) -> Account:
        """Open the account of a connection from this address."""
        known = self._addresses.get(address)
        if known is None:
            known = self._addresses[address] = AddressAccount()
        return Account(known)

    def take(self, account: Account, size: int) -> None:
        """Count bytes without waiting for them. A negative `size` gives bytes back."""
        account.held += size
        account.address.held += size
        self.used += size
        if size > 0:
            if self.used > self.limit:
                self._relieve()
        elif self._waiting:
            self._grant()

    def count(self, account: Account, size: int) -> list[Charge]:
        """As `take`; returns the charges to give back."""
        self.take(account, size)
        return [(None, size)]

    def hold(self, account: Account, kind: Kind | None, size: int) -> None:
        """Count bytes of this kind, even if there is no room."""
        if kind is not None:
            kind.used += size
        self.take(account, size)

    def of_frame(self, size: int) -> Kind:
        """The kind of memory that a frame of this size takes."""
        return self.frames if size <= self.fair else self.large_frames

    def of_work(self, size: int) -> Kind:
        """The kind of memory that the values of a request take, where they take so much."""
        return self.work if size <= self.fair else self.large_work

    def of_answer(self, size: int) -> Kind:
        """The kind of memory that an answer of this size takes."""
        return self.answers if size <= self.fair else self.large_answers

    def reserve(self, account: Account, kind: Kind, size: int, grant: Callable[[], None]) -> bool:
        """Hold `size` bytes: from now on (returns True), or from the call of `grant` on (returns False).

        `grant` is called in the middle of another connection's work, so it must do little.
        """
        if not kind and self._fits(kind, size):
            self.hold(account, kind, size)
            return True
        kind.add(_Waiter(account, size, grant))
        self._waiting = True
        self._relieve()
        return False

    def give_back(self, account: Account, charges: Iterable[Charge]) -> None:
        """Free all of these bytes."""
        for kind, size in charges:
            if kind is not None:
                kind.used -= size
            self.take(account, -size)

    def exchange(self, account: Account, charges: Iterable[Charge], kind: Kind, size: int) -> None:
        """Hold `size` bytes of this kind in place of these charges, in one step: others cannot come between."""
        kind.used += size
        more = size
        for each, held in charges:
            if each is not None:
                each.used -= held
            more -= held
        self.take(account, more)
        if more > 0 and self._waiting:  # they may be of other kinds
            self._grant()

    def answer_room(self) -> int:
        """How many bytes an answer may have without waiting for memory; 64 KiB at least.

        Two sixteenths of the limit while little is held: then a Fetch reads more partitions at once.
        """
        if self.used <= self._roomy:
            return 2 * self.fair if self.used <= self.fair else self.fair
        free = self.answers.share - self.answers.used + self._common - self._beyond()
        return max(SMALL, min(self.fair, free // 4))

    def may_read(self, account: Account, again: Callable[[], None]) -> bool:
        """Whether a connection may read on. If not, `again` is called when the connection may ask again."""
        if self.used <= self.limit or account.held <= SMALL:
            return True
        self._readers[again] = None
        self._waiting = True
        return False

    def forget(self, account: Account, again: Callable[[], None]) -> None:
        """The connection is lost and waits for nothing. It still gives back the bytes it holds."""
        self._readers.pop(again, None)
        for kind in self._kinds:
            kind.forget(account)
        if self._waiting:
            self._grant()

    def _beyond(self) -> int:
        return sum(kind.beyond for kind in self._kinds)

    def _fits(self, kind: Kind, size: int) -> bool:
        if kind.used + size <= kind.share or not (kind.share or kind.used):
            return True
        more = kind.used + size - max(kind.share, kind.used)
        return self._beyond() + more <= self._common

    def _grant(self) -> None:
        """Grant the reservations that have room now."""
        self._again = True
        if self._granting:
            return
        self._granting = True
        while self._again:
            self._again = False
            for kind in self._kinds:
                self._grant_kind(kind)
            self._wake_readers()
        self._granting = False
        self._waiting = bool(self._readers) or any(self._kinds)

    def _grant_kind(self, kind: Kind) -> None:
        while kind and self._fits(kind, (first := kind.first()).size):
            kind.pop()
            self.hold(first.account, kind, first.size)
            first.grant()

    def _wake_readers(self) -> None:
        room = self.limit - self.used
        while self._readers and room >= 0:
            again = next(iter(self._readers))
            del self._readers[again]
            room -= SMALL
            again()
