"""The progress of the metadata log's followers: a record is committed when most brokers have it. Pure.

No other log could name the in-sync replicas of this one. So a record is safe on more than half of the brokers, and a
candidate asks more than half of them (`quorum.py`): the two halves have one broker in common (Raft).
"""

from collections.abc import Iterable

_UNKNOWN = -1


class QuorumProgress:
    """One leadership of the metadata log. `high_watermark`: records below it are on the disks of most brokers."""

    __slots__ = ("_begin", "_ends", "_own", "epoch", "high_watermark")

    def __init__(self, own: int, epoch: int, voters: Iterable[int], end: int, high_watermark: int) -> None:
        """`end`: of the leader's log on its disk, when this leadership begins."""
        self.epoch = epoch
        self.high_watermark = high_watermark
        self._own = own
        self._begin = end
        self._ends = dict.fromkeys(voters, _UNKNOWN)
        self._ends[own] = end

    @property
    def told_high_watermark(self) -> int:
        """See `LeaderProgress.told_high_watermark`: the first record of a leadership makes older ones safe."""
        return self.high_watermark if self.high_watermark > self._begin else -1

    @property
    def end(self) -> int:
        """The leader's disk has everything below."""
        return self._ends[self._own]

    def appended(self, end: int) -> bool:
        """The leader's disk has everything below `end`; returns whether the watermark moved."""
        return self.fetched(self._own, end)

    def fetched(self, voter: int, offset: int, _: float = 0.0) -> bool:
        """A broker has everything below `offset`; returns whether the watermark moved. The time is not used."""
        if voter not in self._ends or (voter != self._own and offset > self._ends[self._own]):
            return False
        self._ends[voter] = offset
        common = sorted(self._ends.values(), reverse=True)[len(self._ends) // 2]
        # A former leader's record is safe only together with one of this leadership (Raft, figure 8).
        if common <= max(self.high_watermark, self._begin):
            return False
        self.high_watermark = common
        return True

    def knows(self, voter: int) -> bool:
        """Whether this broker is another one of those who vote."""
        return voter in self._ends and voter != self._own

    def find_end(self, voter: int) -> int:
        """The end of a broker's copy; -1 while it is not known."""
        return self._ends[voter]
