"""Where to begin reading: `earliest`, `latest`, an offset, or a time. For `consume --from` and `group reset --to`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import click

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import find_offset
from korvet_fast.client.groups import find_bounds
from korvet_fast.printable import printable

LEGAL = "earliest, latest, an offset (0, 1, 2, ...) or a time such as 2026-01-31T12:00:00+01:00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        return Target(time=parse_time(text))
    except ValueError:
        raise click.BadParameter(f"{text!r} is none of: {LEGAL}") from None


def parse_time(text: str) -> int:
    """Read a time in ISO 8601 as ms since 1970, at least 0; without a zone it is UTC, as in Kafka's tools.

    Raises `ValueError`.
    """
    when = datetime.fromisoformat(text)
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    return max(0, since // timedelta(milliseconds=1))


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


def say_if_beyond(topic: str, target: Target, ends: Mapping[int, int]) -> None:
    """Say on standard error that no partition has the offset yet, so that nobody wonders why nothing is printed."""
    last = max(ends.values(), default=None)
    if target.offset is not None and last is not None and target.offset > last:
        click.echo(
            f"no partition of {printable(topic)} has offset {target.offset} yet, they end at {last} at most: "
            "waiting for new records",
            err=True,
        )
