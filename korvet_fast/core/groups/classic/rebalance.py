"""The two phases of a rebalance in time: until when members may join, and until when they have to sync."""

from collections.abc import Iterable

from korvet_fast.core.groups.classic.members import ClassicMember, ClassicMembers


class Rebalance:
    """All times are seconds of one monotonic clock.

    `deadline`: when the present phase has to be over; None while there is none. `unsynced`: the ids of the members
    that have not synced yet.
    """

    __slots__ = ("_latest", "deadline", "newcomers", "unsynced")

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.unsynced: set[str] = set()
        self.newcomers = False  # members joined since the deadline was set
        self._latest: float | None = None  # how far the deadline may move while a group that was empty is joined

    @property
    def is_delayed(self) -> bool:
        """Whether a group that was empty waits for more members (group.initial.rebalance.delay.ms)."""
        return self._latest is not None

    def begin_joining(self, now: float, members: ClassicMembers, initial_delay: float) -> float:
        """Members join from now on; the deadline. `initial_delay` is 0 for a group that was not empty."""
        self.unsynced.clear()
        self.newcomers = False
        self._latest = None
        self.deadline = now + members.longest_rebalance_timeout()
        if initial_delay > 0:
            self._latest = self.deadline
            self.deadline = min(now + initial_delay, self._latest)
        return self.deadline

    def extend_joining(self, now: float, initial_delay: float) -> bool:
        """Wait for still more members if some came during the initial delay; whether it is so."""
        if self._latest is None or not self.newcomers or now >= self._latest:
            return False
        self.newcomers = False
        self.deadline = min(now + initial_delay, self._latest)
        return True

    def end_joining(self) -> None:
        """Nobody is left who could join or sync."""
        self._latest = self.deadline = None

    def begin_syncing(self, now: float, members: ClassicMembers, joined: Iterable[ClassicMember]) -> float:
        """Those of the members that have joined sync from now on; the deadline."""
        self._latest = None
        self.unsynced = {member.id for member in joined}
        self.deadline = now + members.longest_rebalance_timeout()
        return self.deadline

    def is_over(self, now: float) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and self.deadline <= now

    def extend_deadlines(self, seconds: float) -> None:
        """The phase may take so much longer."""
        if self.deadline is not None:
            self.deadline += seconds
        if self._latest is not None:
            self._latest += seconds
