"""The frame that is arriving on a connection: the memory it takes, and whether it arrives fast enough."""

from collections.abc import Callable, Sequence

from korvet_fast.net.pool import SMALL, Account, Charge, Pool
from korvet_fast.wire.dialect import Frames


class Receive:
    """Kafka's NetworkReceive. Only the time in which the connection reads counts: a pause is not the peer's fault.

    `resume` is called when a frame that waited for memory gets it. `unfinished`: a part of a frame has arrived, or
    nothing at all yet: the time of the first frame begins with the connection.
    """

    __slots__ = (
        "_account",
        "_asked",
        "_counted",
        "_marked_at",
        "_marked_bytes",
        "_pool",
        "_reserved",
        "_resume",
        "_since",
        "_time",
        "announced",
        "pending",
        "unfinished",
        "waiting",
    )

    def __init__(self, pool: Pool, account: Account, resume: Callable[[], None]) -> None:
        self._pool = pool
        self._account = account
        self._resume = resume
        self.pending = 0  # bytes of the frame that have arrived
        self.announced = 0  # bytes that the frame will have; 0: not known
        self.unfinished = True
        self.waiting = False  # the frame waits for memory, and nothing more of it may be read
        self._counted = 0
        self._asked: Charge | None = None  # memory it waits for; granted even if the frame was dropped
        self._reserved: Charge | None = None
        self._time = 0.0  # seconds of reading before `_since`
        self._since: float | None = None  # None while the connection does not read, as before it has its socket
        self._marked_at = 0.0
        self._marked_bytes = 0

    @property
    def held(self) -> int:
        """Bytes that the pool counts for the frame."""
        return self._counted if self._reserved is None else self._reserved[1]

    def note_read(self, frames: Sequence[bytearray], rest: Frames, now: float, *, more: bool) -> list[Charge] | None:
        """Note that a read completed `frames`, and how much it left of the next one. `more`: the rest is not cut yet.

        Returns the memory reserved for the first of `frames`, which belongs to the caller now.
        """
        charges = None
        if frames:
            charges = self.finish()
            self.begin(now)
        elif not self.unfinished:
            self.begin(now)
        self.note(rest.pending, rest.announced)
        self.unfinished = self.pending > 0 and not more
        return charges

    def note(self, pending: int, announced: int) -> None:
        """Note that `pending` of the frame's `announced` bytes have arrived."""
        self.pending = pending
        self.announced = announced
        if self._reserved is not None:
            return
        self._count(pending)
        if announced > SMALL and not self.waiting:
            kind = self._pool.of_frame(announced)
            self._asked = (kind, announced)
            if self._pool.reserve(self._account, kind, announced, self._grant):
                self._hold()
            else:
                self.waiting = True

    def begin(self, now: float) -> None:
        """Start the time of the next frame."""
        self._time = 0.0
        if self._since is not None:
            self._since = now
        self._marked_at, self._marked_bytes = 0.0, 0

    def finish(self) -> list[Charge] | None:
        """The frame is whole: returns the memory reserved for it, which belongs to the caller now."""
        reserved, self._reserved = self._reserved, None
        self.pending = self.announced = 0
        self._count(0)
        return None if reserved is None else [reserved]

    def drop(self) -> None:
        """Drop the frame: nothing more of it will come."""
        self.unfinished = False
        if (charges := self.finish()) is not None:
            self._pool.give_back(self._account, charges)

    def pause(self, now: float) -> None:
        """Note that the connection stopped reading."""
        if self._since is not None:
            self._time += now - self._since
            self._since = None

    def go_on(self, now: float) -> None:
        """Note that the connection reads again."""
        if self._since is None:
            self._since = now

    def age(self, now: float) -> float:
        """Seconds that the connection read since the frame began."""
        return self._time + (0.0 if self._since is None else now - self._since)

    def is_slow(self, now: float, rate: int, patience: float) -> bool:
        """Whether the frame arrived at less than `rate` bytes a second, for `patience` seconds or more."""
        age = self.age(now)
        seconds = age - self._marked_at
        if not self.pending or seconds < patience:
            return False
        slow = self.pending - self._marked_bytes < rate * seconds
        if not slow:
            self._marked_at, self._marked_bytes = age, self.pending
        return slow

    def _grant(self) -> None:
        self.waiting = False
        self._hold()
        self._resume()

    def _hold(self) -> None:
        self._reserved, self._asked = self._asked, None
        self._count(0)

    def _count(self, size: int) -> None:
        if size != self._counted:
            more, self._counted = size - self._counted, size
            self._pool.take(self._account, more)
