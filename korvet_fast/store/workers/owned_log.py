"""A log of the embedded store that takes appends only while this worker owns it."""

from collections.abc import Callable, Sequence

from korvet_fast.store.embedded.log import Log
from korvet_fast.store.types import NotLeader, OffsetConflict, RecordBatch, SegmentLimits

_GROWTH = 32 << 20  # bytes that a log grows by until its index is written: the next owner reads what came after


class OwnedLog(Log):
    """`owned`: by this worker, and open. `fenced`: it was owned; `given_up`: so because another one asked for it.

    `on_growth` is called with the log when much was written.
    """

    __slots__ = ("_noted", "fenced", "given_up", "on_growth", "owned")

    on_growth: "Callable[[OwnedLog], None]"
    given_up: bool  # where `fenced`

    def reset_owned(self, found: Log | None) -> None:
        """This worker owns the log now. `found`: as it lies on the disk; None: there is none yet."""
        if found is None:
            self.reset()
        else:
            self.reset(found.segments, found.start)
            self.dirty, self.fresh = found.dirty, found.fresh
        self.owned, self.fenced = True, False
        self._noted = 0

    def reset_unowned(self, *, fenced: bool) -> None:
        """This worker does not own the log (any more). Nothing is under way."""
        self.reset()
        self.owned, self.fenced = False, fenced

    def write(self, batches: Sequence[RecordBatch], at: int, segment_limits: SegmentLimits) -> int:
        """See `Log.write`. Raises `NotLeader` or `OffsetConflict` where this worker does not own the log."""
        if not self.owned:
            if self.fenced:
                raise OffsetConflict(-1, fenced=True, given_up=self.given_up)
            raise NotLeader(f"{self.name} has to be acquired before anything is appended")
        end = super().write(batches, at, segment_limits)
        size = self.segments[-1].size
        if size - self._noted > _GROWTH:
            self._noted = size
            self.on_growth(self)
        elif size < self._noted:
            self._noted = 0  # a new segment
        return end
