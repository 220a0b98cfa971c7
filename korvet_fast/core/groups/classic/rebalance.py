"""The times of a rebalance: until when members may join, and until when members have to sync."""

from collections.abc import Iterable

from korvet_fast.core.groups.classic.members import ClassicMember, ClassicMembers


class Rebalance:
    """All times are seconds of one monotonic clock.

    `deadline`: the end of the present phase; None outside of a rebalance. `unsynced`: the ids of the members
    that have not synced yet.
    """

    __slots__ = ("_latest", "deadline", "newcomers", "unsynced")

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.unsynced: set[str] = set()
        self.newcomers = False  # members joined since the deadline was set
        self._latest: float | None = None  # the last possible deadline, while members join a group that was empty

    @property
    def is_delayed(self) -> bool:
        """Whether a group that was empty waits for more members (group.initial.rebalance.delay.ms)."""
        return self._latest is not None

    def begin_joining(self, now: float, members: ClassicMembers, initial_delay: float) -> float:
        """Begin the phase in which members join; the deadline. `initial_delay` is 0 for a group that was not empty."""
        self.unsynced.clear()
        self.newcomers = False
        self._latest = None
        self.deadline = now + members.longest_rebalance_timeout()
        if initial_delay > 0:
            self._latest = self.deadline
            self.deadline = min(now + initial_delay, self._latest)
        return self.deadline

    def extend_joining(self, now: float, initial_delay: float) -> bool:
        """Wait longer if members joined during the initial delay; returns whether the deadline has moved."""
        if self._latest is None or not self.newcomers or now >= self._latest:
            return False
        self.newcomers = False
        self.deadline = min(now + initial_delay, self._latest)
        return True

    def end_joining(self) -> None:
        """End the rebalance: no member is left."""
        self._latest = self.deadline = None

    def begin_syncing(self, now: float, members: ClassicMembers, joined: Iterable[ClassicMember]) -> float:
        """Begin the phase in which the `joined` members sync; the deadline."""
        self._latest = None
        self.unsynced = {member.id for member in joined}
        self.deadline = now + members.longest_rebalance_timeout()
        return self.deadline

    def is_over(self, now: float) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and self.deadline <= now

    def extend_deadlines(self, seconds: float) -> None:
        """Let the phase take so many seconds longer."""
        if self.deadline is not None:
            self.deadline += seconds
        if self._latest is not None:
            self._latest += seconds
