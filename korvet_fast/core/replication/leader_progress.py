"""The leader's record of its followers: their ends, the in-sync replicas, the high watermark. Pure.

Replicas that keep up are in sync; the high watermark is the least log end of those in sync. A change of the in-sync
replicas counts when the metadata log has it. Until then the leader waits for both the former and the new members
(KIP-497), so that whoever the metadata log allows to lead has all below the watermark.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_UNKNOWN = -1  # as a log end: nothing was heard in this leadership


@dataclass(slots=True)
class FollowerProgress:
    """`end`: the follower has everything below it on its disk. Times are monotonic seconds."""

    end: int = _UNKNOWN
    fetched_at: float = 0.0
    caught_up_at: float = 0.0
    end_then: int = 0  # the leader's log end at the last fetch


@dataclass(frozen=True, slots=True)
class LagLimits:
    """A follower is in sync that was no more than `records` behind within the last `seconds`."""

    records: int = 0
    seconds: float = 10.0


class LeaderProgress:
    """One leadership of one log: a broker's, under one epoch.

    `isr`: the in-sync replicas in the metadata log. `pending`: those after the change under way; None: there is none.
    `high_watermark`: everything below it is on the disks of all in sync; it never goes back.
    """

    __slots__ = (
        "_begin",
        "_followers",
        "_limits",
        "_minimum",
        "_own",
        "end",
        "epoch",
        "high_watermark",
        "isr",
        "pending",
    )

    def __init__(
        self,
        own: int,
        epoch: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        end: int,
        high_watermark: int,
        minimum: int,
        limits: LagLimits,
        now: float,
    ) -> None:
        """`end`: of the leader's log, on its disk. `minimum`: min.insync.replicas. `now`: monotonic seconds."""
        self.epoch = epoch
        self.end = end
        self.isr = frozenset(isr)
        self.pending: frozenset[int] | None = None
        self.high_watermark = high_watermark
        self._begin = end
        self._own = own
        self._minimum = minimum
        self._limits = limits
        self._followers = {
            replica: FollowerProgress(fetched_at=now, caught_up_at=now, end_then=end)
            for replica in replicas
            if replica != own
        }

    @property
    def suffices(self) -> bool:
        """Whether min.insync.replicas are in sync."""
        return len(self.isr) >= self._minimum

    @property
    def told_high_watermark(self) -> int:
        """As followers are told; -1 while this leadership does not know what earlier ones acknowledged."""
        return self.high_watermark if self.high_watermark >= self._begin else -1

    def configure(self, minimum: int) -> bool:
        """Take another min.insync.replicas; returns whether the watermark moved."""
        self._minimum = minimum
        return self._advance()

    def appended(self, end: int) -> bool:
        """The leader's disk has everything below `end`; returns whether the watermark moved."""
        self.end = max(self.end, end)
        return self._advance()

    def fetched(self, replica: int, offset: int, now: float) -> bool:
        """A follower fetches from `offset`, so it has all below; returns whether the watermark moved.

        A broker that is no replica of the log, or fetches from above the leader's end, is not believed.
        """
        follower = self._followers.get(replica)
        if follower is None or offset > self.end:
            return False
        if offset + self._limits.records >= self.end:
            follower.caught_up_at = now
        elif offset + self._limits.records >= follower.end_then:
            follower.caught_up_at = max(follower.caught_up_at, follower.fetched_at)
        follower.end = offset
        follower.fetched_at, follower.end_then = now, self.end
        return self._advance()

    def knows(self, replica: int) -> bool:
        """Whether this broker is a follower of the log."""
        return replica in self._followers

    def find_end(self, replica: int) -> int:
        """The end of a replica; -1 while it is not known."""
        return self.end if replica == self._own else self._followers[replica].end

    def propose(self, now: float) -> frozenset[int] | None:
        """The new in-sync replicas; None if nothing changes, or a change is pending."""
        if self.pending is not None:
            return None
        wanted = self._find_keeping_up(now)
        return wanted if wanted != self.isr else None

    def find_in_sync(self, now: float) -> frozenset[int]:
        """The in-sync replicas, without those that no longer keep up: the metadata log may not have that yet."""
        return self.isr & self._find_keeping_up(now)

    def _find_keeping_up(self, now: float) -> frozenset[int]:
        keeps_up = {replica for replica, follower in self._followers.items() if self._keeps_up(replica, follower, now)}
        return frozenset(keeps_up | {self._own})

    def _keeps_up(self, replica: int, follower: FollowerProgress, now: float) -> bool:
        recent = now - follower.caught_up_at <= self._limits.seconds
        if replica in self.isr:
            # A replica that went back has lost records that it had confirmed: it may not lead.
            return recent and (follower.end == _UNKNOWN or follower.end >= self.high_watermark)
        return recent and follower.end >= self.high_watermark and follower.end + self._limits.records >= self.end

    def begin_change(self, isr: frozenset[int]) -> None:
        """The metadata log is asked for these in-sync replicas: until it answers, the leader waits for both sets."""
        self.pending = isr

    def take_isr(self, isr: Iterable[int]) -> bool:
        """The metadata log has these in sync; a change under way stays pending. Returns whether the watermark moved."""
        self.isr = frozenset(isr)
        return self._advance()

    def end_change(self, isr: Iterable[int]) -> bool:
        """The change is made: the metadata log has these in sync. Returns whether the watermark moved."""
        self.pending = None
        return self.take_isr(isr)

    def _advance(self) -> bool:
        if not self.suffices:
            return False
        least = min(self.find_end(replica) for replica in self.isr | (self.pending or frozenset()))
        if least <= self.high_watermark:
            return False
        self.high_watermark = least
        return True
