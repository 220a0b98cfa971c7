"""A follower of one log: the leader that it follows, the end to truncate to, the offset to fetch from. Pure.

Before a follower fetches under a new epoch it asks the leader where the follower's last epoch ended there, and
truncates the records that the leader does not have (KIP-101). If the leader never had that epoch, it goes back to its
last one that both had, and asks again (KIP-279). The high watermark alone never decides: it may be out of date.
"""

from korvet_fast.core.partition.leader_epochs import EpochOffset, LeaderEpochCache

_NOBODY = -1


class FollowerState:
    """`asking`: the epoch whose end the leader is asked for; None: it is time to fetch from `end`.

    `epochs` is the history of the follower's own log, which ends at `end`. `high_watermark`: as the leader told it, but
    not above `end`; `target`: not cut off there, -1 before a leader told any.
    """

    __slots__ = ("asking", "end", "epoch", "epochs", "high_watermark", "leader", "target")

    def __init__(self, epochs: LeaderEpochCache, end: int, high_watermark: int, epoch: int = -1) -> None:
        """`epoch`: the highest under which this broker knows that somebody led."""
        self.leader = _NOBODY
        self.epoch = epoch
        self.epochs = epochs
        self.end = end
        self.high_watermark = high_watermark
        self.target = -1
        self.asking: int | None = None

    def follow_leader(self, leader: int, epoch: int) -> bool:
        """Follow a leader under its epoch; returns whether that is another leadership than before.

        An older epoch is ignored, and so is a second leader of the same one: an epoch has one leader.
        """
        if epoch < self.epoch or (epoch == self.epoch and self.leader != _NOBODY):
            return False
        self.leader, self.epoch = leader, epoch
        self.asking = self.epochs.last if self.epochs.entries else None
        return True

    def forget_leader(self) -> None:
        """Nobody is followed any more; the next leader may have the same epoch if it is the one that was lost."""
        self.leader, self.asking = _NOBODY, None

    def find_divergence(self, epoch: int, asked: int, answer: EpochOffset) -> int | None:
        """The leader of `epoch` has answered where epoch `asked` ends in its log; returns where this log must end.

        None: nothing is to be truncated. `answer`: the largest epoch up to `asked` that the leader has, and where it
        ends there. After that `asking` says what comes next. An answer that was not waited for changes nothing.
        """
        if epoch != self.epoch or asked != self.asking or answer[1] < 0:
            return None
        theirs, their_end = answer
        if theirs == asked:
            self.asking = None
            return self._truncate(their_end)
        before = [row for row in self.epochs.entries if row[0] <= theirs]
        behind = next(first for known, first in self.epochs.entries if known > theirs)
        if not before or before[-1][0] == theirs:
            self.asking = None
            return self._truncate(min(their_end, behind) if before else behind)
        self.asking = before[-1][0]
        return self._truncate(behind)

    def _truncate(self, end: int) -> int | None:
        # Also an epoch that this broker began and wrote nothing under: the leader may send records of earlier ones
        # (as Kafka's UnifiedLog.truncateTo).
        self.epochs.truncate(min(end, self.end))
        if end >= self.end:
            return None
        self.end = end
        self.high_watermark = min(self.high_watermark, end)
        return end

    def restart(self, start: int) -> None:
        """The leader's log starts above this one's end: begin anew there."""
        self.end = self.high_watermark = start
        self.epochs.replace(())
        self.asking = None

    def accepts(self, epoch: int, offset: int) -> bool:
        """Whether batches fetched at `offset` from the leader of `epoch` belong behind this log."""
        return epoch == self.epoch and self.asking is None and offset == self.end

    def appended(self, end: int) -> None:
        """The fetched batches are in the log, which now ends at `end`."""
        self.end = end

    def update_high_watermark(self, high_watermark: int) -> bool:
        """The leader told its high watermark; returns whether this one's moved. It never goes back."""
        self.target = high_watermark
        reached = min(high_watermark, self.end)
        if reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True
