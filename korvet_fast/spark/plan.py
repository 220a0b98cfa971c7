"""Divides ranges of offsets into tasks and micro-batches, by arithmetic alone.

Sizes count offsets, as in Spark's Kafka source. Where offsets have gaps (compacted topics, offsets that follow the
clock) a range has fewer records than that.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.spark.offsets import Offsets

ADVICE = "set option 'failOnDataLoss' to false to go on without them"


class Range(NamedTuple):
    """The records `start` <= offset < `end` of a partition, which one task reads."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"partition {self.partition} of topic {self.topic!r}"

    def divide(self, parts: int) -> list["Range"]:
        """The range as `parts` ranges, whose sizes differ by one offset at most."""
        ends = [self.start + self.size * part // parts for part in range(parts + 1)]
        return [self._replace(start=start, end=end) for start, end in pairwise(ends)]


def split(ranges: Iterable[Range], least: int | None, most: int | None) -> list[Range]:
    """The ranges that are not empty, divided until none is larger than `most` and there are about `least` of them.

    For `least`, large ranges are divided in proportion to their sizes; a range too small for a share stays whole.
    """
    whole = [each for each in ranges if each.size > 0]
    if most is not None:
        whole = [part for each in whole for part in each.divide(-(-each.size // most))]
    if least is None or least <= len(whole):
        return whole
    total = sum(each.size for each in whole)
    large = [each for each in whole if _share(each.size, total, least) > 1]
    large_total = sum(each.size for each in large)
    wanted = max(least - (len(whole) - len(large)), 1)
    return [
        part
        for each in whole
        for part in each.divide(_share(each.size, large_total, wanted) if _share(each.size, total, least) > 1 else 1)
    ]


def _share(size: int, total: int, parts: int) -> int:
    """`parts` * size / total, rounded; at least 1, at most `size`."""
    return min(max((2 * parts * size + total) // (2 * total), 1), max(size, 1))


def limit(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int) -> Offsets:
    """Nearer ends, about `most` offsets together: each partition in proportion to its backlog, at least one offset."""
    backlog = {partition: max(end - starts[partition], 0) for partition, end in ends.items()}
    total = sum(backlog.values())
    if total <= most:
        return dict(ends)
    return {
        partition: starts[partition] + max(most * size // total, 1) if (size := backlog[partition]) else end
        for partition, end in ends.items()
    }


def clip(
    wanted: Sequence[Range], earliest: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> tuple[list[Range], list[str]]:
    """The parts of the ranges that can be read, and a sentence for each range with a loss.

    `earliest`, `latest`: where the log of each partition starts and ends; a partition that is not in them is gone.
    """
    left, losses = [], []
    for each in wanted:
        partition, name = each.topic_partition, str(each)
        if partition not in latest:
            losses.append(f"{name} is gone, and offset {each.start} was to be read next: {ADVICE}")
        elif each.end > latest[partition] or each.start > each.end:
            end = each.end if each.start > each.end else latest[partition]
            span = f"from {each.start} " + ("on" if each.start > each.end else f"to {each.end}")
            losses.append(
                f"{name} ends at offset {end}, and was to be read {span}: it was made anew or lost records; {ADVICE}"
            )
            left.append(each._replace(start=min(each.start, end), end=end))
        elif each.start < min(earliest[partition], each.end):
            start = min(earliest[partition], each.end)
            losses.append(
                f"{name} begins at offset {earliest[partition]}, and was to be read from {each.start} on: "
                f"{start - each.start} offsets were removed, by retention or by hand; {ADVICE}"
            )
            left.append(each._replace(start=start))
        else:
            left.append(each)
    return left, losses
