"""Offsets divided into tasks and into micro-batches: pure arithmetic, however many records lie between two offsets.

Sizes are counted in offsets, as Spark's Kafka source does: where offsets have gaps (compacted topics, offsets that
follow the clock) there are fewer records than that.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from korvet_fast.spark.cluster import Place
from korvet_fast.spark.offsets import Offsets

ADVICE = "set option 'failOnDataLoss' to false to go on without them"


class Range(NamedTuple):
    """The records `start` <= offset < `end` of a partition: what one task reads."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"partition {self.partition} of topic {self.topic!r}"

    def cut(self, parts: int) -> list["Range"]:
        """As `parts` ranges that are equal, but for one offset."""
        ends = [self.start + self.size * part // parts for part in range(parts + 1)]
        return [self._replace(start=start, end=end) for start, end in pairwise(ends)]


def split(ranges: Iterable[Range], least: int | None, most: int | None) -> list[Range]:
    """Ranges that hold something, cut so that none is larger than `most` and there are about `least` of them.

    For `least`, large ranges are cut in proportion to their size, and those too small for a share stay whole.
    """
    whole = [each for each in ranges if each.size > 0]
    if most is not None:
        whole = [part for each in whole for part in each.cut(-(-each.size // most))]
    if least is None or least <= len(whole):
        return whole
    total = sum(each.size for each in whole)
    large = [each for each in whole if _share(each.size, total, least) > 1]
    large_total = sum(each.size for each in large)
    wanted = max(least - (len(whole) - len(large)), 1)
    return [
        part
        for each in whole
        for part in each.cut(_share(each.size, large_total, wanted) if _share(each.size, total, least) > 1 else 1)
    ]


def _share(size: int, total: int, parts: int) -> int:
    """`parts` times size / total, rounded, but 1 at least and no more than there is to share."""
    return min(max((2 * parts * size + total) // (2 * total), 1), max(size, 1))


def limit(starts: Mapping[Place, int], ends: Mapping[Place, int], most: int) -> Offsets:
    """Nearer ends, about `most` offsets away together: in proportion to each partition's backlog, but one at least."""
    backlog = {place: max(end - starts[place], 0) for place, end in ends.items()}
    total = sum(backlog.values())
    if total <= most:
        return dict(ends)
    return {
        place: starts[place] + max(most * size // total, 1) if (size := backlog[place]) else end
        for place, end in ends.items()
    }


def clip(
    wanted: Sequence[Range], earliest: Mapping[Place, int], latest: Mapping[Place, int]
) -> tuple[list[Range], list[str]]:
    """What is left of the ranges, and a sentence for each in which something is lost.

    `earliest`, `latest`: what the log of each partition holds, start and end; a partition not in them is gone.
    """
    left, losses = [], []
    for each in wanted:
        place, name = each.place, str(each)
        if place not in latest:
            losses.append(f"{name} is gone, and offset {each.start} was to be read next: {ADVICE}")
        elif each.end > latest[place] or each.start > each.end:
            end = each.end if each.start > each.end else latest[place]
            span = f"from {each.start} " + ("on" if each.start > each.end else f"to {each.end}")
            losses.append(
                f"{name} ends at offset {end}, and was to be read {span}: it was made anew or lost records; {ADVICE}"
            )
            left.append(each._replace(start=min(each.start, end), end=end))
        elif each.start < min(earliest[place], each.end):
            start = min(earliest[place], each.end)
            losses.append(
                f"{name} begins at offset {earliest[place]}, and was to be read from {each.start} on: "
                f"{start - each.start} offsets were removed, by retention or by hand; {ADVICE}"
            )
            left.append(each._replace(start=start))
        else:
            left.append(each)
    return left, losses
