"""The partitions of a read: those assigned, or all partitions of topics, chosen by name or by a pattern."""

from collections.abc import Iterable, Sequence

from korvet_fast.client.protocol.errors import BrokerError, ClientError
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.errors import CodecError, Errors, SettingError
from korvet_fast.spark.cluster import BlockingCluster
from korvet_fast.spark.options import Options


def find_partitions(cluster: BlockingCluster, options: Options, *, some: bool = False) -> list[TopicPartition]:
    """The partitions that exist now, in order. `some`: topics and partitions that are gone are left out.

    Otherwise a topic or partition that is named and does not exist raises `ClientError`.
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
    return [each for each in options.assign if each[1] < counts.get(each[0], 0)]


def count(cluster: BlockingCluster, names: Sequence[str]) -> dict[str, int]:
    """How many partitions each of the topics has; a topic that does not exist is left out."""
    try:
        return cluster.partitions(names)
    except BrokerError as error:
        if error.error != Errors.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    return {name: number for name, number in cluster.partitions(None).items() if name in names}


def _fit(pattern: str, counts: dict[str, int]) -> dict[str, int]:
    from korvet_fast._native import match_names

    names: Iterable[str]
    try:
        names = match_names(pattern, sorted(counts))
    except CodecError as error:
        why = error.message.splitlines()[-1].removeprefix("error: ")  # the lines above it show the pattern
        raise SettingError(
            f"option 'subscribePattern' is {pattern!r}, which cannot be used ({why}): patterns are in RE2's "
            f"language, which has Java's but for back-references and look-around"
        ) from None
    return {name: counts[name] for name in names}
