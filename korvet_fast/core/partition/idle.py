"""Partitions that nobody uses: the small objects that they keep are few, and are made while memory is quiet.

Python gives back a MiB of small objects when the last of them has gone. A number that a partition was given while
memory was full lies among the objects of requests, and keeps such a MiB for as long as nothing is appended. So equal
numbers become one object, which is made anew, and everything that can be computed again is dropped.
"""

from collections.abc import Iterable

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.partition.renewal import renew


async def settle_idle(partitions: Iterable[Partition]) -> None:
    """Settle the partitions that nobody appended to since the last call, and that nobody waits at."""
    pace = BackgroundPace()
    for partition in partitions:
        if partition.high_watermark.is_idle():
            end = renew(partition.log.end)
            partition.log.settle_idle(end)
            partition.high_watermark.settle_idle(end)
            partition.saver.unsaved = renew(partition.saver.unsaved)
        if pace.due():
            await pace.turn()
