"""How far groups are behind, and how that was during the last minutes: a few numbers for each group."""

from array import array
from collections.abc import Iterable
from typing import Final

from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.topics.index import TopicIndex
from korvet_fast.core.topics.topic import Topic

INTERVAL: Final = 10.0  # seconds between two samples
SAMPLES: Final = 120  # of a group that are kept: 20 minutes
_MOST_GROUPS: Final = 1000  # whose lags are kept
_MOST_OFFSETS: Final = 20_000  # that are looked at for one sample
UNKNOWN: Final = -1


def find_lag(topic: Topic, index: int, committed: int) -> int | None:
    """The high watermark minus the committed offset, as Kafka's tools compute it; None if this broker cannot tell.

    It cannot where another broker leads; nor in the layout `entries`, where offsets follow the clock, before the end.
    Records between the two may have been deleted; below zero: the group committed records that were lost since.
    """
    partition = topic.partitions[index] if 0 <= index < len(topic.partitions) else None
    if partition is None or not partition.leadership.leads:
        return None
    end = partition.high_watermark.offset
    if partition.log.entries_layout:
        return 0 if max(committed, partition.log.start) >= end else None
    return end - committed


async def sum_lag(runtime: GroupRuntime, topics: TopicIndex, pace: Pace) -> int | None:
    """The lag of a group in all its partitions together; None if it is not known of one, or there are none.

    One below zero counts as none: it must not hide that of another.
    """
    total: int | None = None
    for partition, committed in list(runtime.offsets.stored.items()):
        topic = topics.by_id(committed.topic_id)
        if topic is not None:
            lag = find_lag(topic, partition.partition, committed.offset)
            if lag is None:
                return None
            total = max(0, lag) + (total or 0)
        if pace.due():
            await pace.turn()
    return total


class LagHistory:
    """The lag of each group over time: 64-bit numbers, oldest first, `UNKNOWN` where it was not known."""

    def __init__(self) -> None:
        self._lags: dict[str, array[int]] = {}

    def of(self, group_id: str) -> list[int]:
        """At most `SAMPLES` numbers, the last of them `INTERVAL` seconds old at most."""
        return list(self._lags.get(group_id, ()))

    async def sample(self, runtimes: Iterable[GroupRuntime], topics: TopicIndex, pace: Pace) -> None:
        """Note the lag of each group now; of groups beyond a thousand, or 20,000 offsets, nothing is noted."""
        kept: dict[str, array[int]] = {}
        offsets = 0
        for runtime in runtimes:
            offsets += len(runtime.offsets.stored)
            if len(kept) == _MOST_GROUPS or offsets > _MOST_OFFSETS:
                break
            lag = await sum_lag(runtime, topics, pace)
            lags = kept[runtime.id] = self._lags.get(runtime.id) or array("q")
            lags.append(UNKNOWN if lag is None else lag)
            del lags[:-SAMPLES]
        self._lags = kept
