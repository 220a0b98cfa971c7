"""Where to begin reading: `earliest`, `latest`, an offset, or a time. For `consume --from` and `group reset --to`."""

from datetime import datetime
from typing import NamedTuple

import click

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import find_offset
from korvet_fast.client.groups import find_bounds

LEGAL = "earliest, latest, an offset (0, 1, 2, ...) or a time such as 2026-01-31T12:00:00+01:00"


class Target(NamedTuple):
    """`word`: earliest or latest; or an `offset`; or a `time` in ms."""

    word: str = ""
    offset: int | None = None
    time: int | None = None


def parse_target(text: str) -> Target:
    """Read what --from and --to take. Raises `click.BadParameter`."""
    if text in ("earliest", "latest"):
        return Target(word=text)
    if text.isdecimal() and len(text) <= 18:
        return Target(offset=int(text))
    try:
        when = datetime.fromisoformat(text)
        return Target(time=max(0, int(when.astimezone().timestamp() * 1000)))  # a time without a zone is local time
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is none of: {LEGAL}") from None


async def find_target(cluster: Cluster, topic: str, partition: int, target: Target) -> tuple[int, int, int]:
    """The first offset of a partition, the one after its last, and the target in between or, if an offset, anywhere.

    A time: where the first record of that time or later is, or the end if there is none. Raises `ClientError`.
    """
    first, end = await find_bounds(cluster, (topic, partition))
    if target.offset is not None:
        return first, end, target.offset
    if target.time is not None:
        found = await find_offset(cluster, topic, partition, target.time)
        return first, end, found if found >= 0 else end
    return first, end, first if target.word == "earliest" else end


async def find_positions(
    cluster: Cluster, topic: str, target: Target, partitions: list[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Where to begin in each partition, and where each ends now. Raises `ClientError`.

    If a partition does not hold the offset, reading begins at its nearer end.
    """
    positions, ends = {}, {}
    for each in partitions:
        first, ends[each], found = await find_target(cluster, topic, each, target)
        positions[each] = min(max(first, found), ends[each])
    return positions, ends
