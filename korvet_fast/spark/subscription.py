"""Which partitions a read is about: those assigned, or all of some topics, by name or by a pattern of names."""

from collections.abc import Iterable, Sequence

from korvet_fast.client.connection import ClientError
from korvet_fast.client.refusal import Refused
from korvet_fast.errors import CodecError, SettingError
from korvet_fast.spark.cluster import Cluster, Place
from korvet_fast.spark.options import Options


def find_partitions(cluster: Cluster, options: Options, *, some: bool = False) -> list[Place]:
    """The partitions there are now, in order. `some`: those that are gone are left out.

    Else a topic or partition that is named and that there is not raises `ClientError`.
    """
    if options.pattern is not None:
        counts = _fit(options.pattern, cluster.partitions(None))
    else:
        names = sorted({topic for topic, _ in options.assign or ()} or set(options.subscribe or ()))
        counts = count(cluster, names) if some else cluster.partitions(names)
    if options.assign is None:
        return [(topic, number) for topic in sorted(counts) for number in range(counts[topic])]
    for topic, number in options.assign:
        if not some and number >= counts[topic]:
            raise ClientError(
                f"option 'assign' names partition {number} of topic {topic!r}, which has {counts[topic]}, from 0 on"
            )
    return [place for place in options.assign if place[1] < counts.get(place[0], 0)]


def count(cluster: Cluster, names: Sequence[str]) -> dict[str, int]:
    """How many partitions those of the topics have that there are."""
    try:
        return cluster.partitions(names)
    except Refused as error:
        if error.name != "UNKNOWN_TOPIC_OR_PARTITION":
            raise
    return {name: number for name, number in cluster.partitions(None).items() if name in names}


def _fit(pattern: str, counts: dict[str, int]) -> dict[str, int]:
    from korvet_fast._native import match_names

    names: Iterable[str]
    try:
        names = match_names(pattern, sorted(counts))
    except CodecError as error:
        why = error.message.splitlines()[-1].removeprefix("error: ")  # above it, the pattern with a mark
        raise SettingError(
            f"option 'subscribePattern' is {pattern!r}, which cannot be used ({why}): patterns are in RE2's "
            f"language, which has Java's but for back-references and look-around"
        ) from None
    return {name: counts[name] for name in names}
