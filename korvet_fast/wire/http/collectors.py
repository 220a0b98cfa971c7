"""Reads what the broker counts anyway into an `Exposition`, a slice of time at a time.

Nothing has a label that clients can make by the thousand: no client id, no member, no address. Topics and committed
offsets have rows up to metrics.max.partitions, in the order of their names: first those that take a tenth of it at
most, as one large topic or group is not to hide all others. Topics that are left out count in the totals.
"""

from collections.abc import Set
from typing import Final

from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.groups.lag import find_lag
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.core.topics.topic import Topic
from korvet_fast.wire.http import metrics_table as metrics
from korvet_fast.wire.http.exposition import Exposition, write_labels

_MS: Final = 1000
_SHARES: Final = 10


class TopicTotals:
    """What all topics together got and gave, those that were deleted included: a counter may not fall.

    A deleted topic counts with what it had at the scrape before.
    """

    def __init__(self) -> None:
        self._deleted = (0, 0, 0)
        self._known: dict[bytes, tuple[int, int, int]] = {}  # by topic id: records in, bytes in, bytes out

    def update(self, present: dict[bytes, tuple[int, int, int]]) -> tuple[int, int, int]:
        """The totals, now that these topics are present."""
        for topic in self._known.keys() - present.keys():
            self._deleted = _sum(self._deleted, self._known[topic])
        self._known = present
        total = self._deleted
        for counts in present.values():
            total = _sum(total, counts)
        return total


def collect_broker(broker: Broker, out: Exposition) -> None:
    """The broker as a whole."""
    out.add(metrics.BROKER_STATE, broker.state)
    out.add(metrics.FAILED_PRODUCES, broker.failed_produces)
    for name, times in sorted(broker.request_times.items()):
        out.add(metrics.REQUESTS, times.count, name)
        out.add_summary(metrics.REQUEST_TIME, times.timed, times.seconds * _MS, name)
        out.add_summary(metrics.QUEUE_TIME, times.count, times.waited * _MS, name)
    _collect_store(broker, out)
    for key in QuotaKey:
        out.add(metrics.THROTTLED, broker.quotas.throttled[key], key)
    out.add(metrics.AUDIT_DROPPED, 0 if broker.audit is None else broker.audit.dropped)
    if broker.network_use is not None:
        connections, memory, limit = broker.network_use()
        out.add(metrics.CONNECTIONS, connections)
        out.add(metrics.MEMORY_USED, memory)
        out.add(metrics.MEMORY_AVAILABLE, max(0, limit - memory))
    _collect_certificates(broker, out)
    out.add(metrics.LOSSES, len(broker.losses))
    replication, controller = broker.replication, broker.cluster.controller
    leader = replication.describe_quorum().leader if replication is not None else controller
    out.add(metrics.ACTIVE_CONTROLLERS, int(leader == broker.node_id))
    out.add(metrics.METADATA_LEADER, leader)


def _collect_store(broker: Broker, out: Exposition) -> None:
    times = broker.read_store_times()
    rows = (
        (metrics.FLUSH_TIME, times.flushes),
        (metrics.ROUND_TRIP_TIME, times.round_trips),
        (metrics.SYNC_TIME, times.syncs),
    )
    for metric, spent in rows:
        if spent is not None:
            out.add_summary(metric, spent.count, spent.seconds * _MS)


def _collect_certificates(broker: Broker, out: Exposition) -> None:
    """Of several with one subject in a file, the first to end: a new one may stand beside the old one."""
    ends: dict[tuple[str, str], int] = {}
    for one in broker.certificate_ends() if broker.certificate_ends is not None else ():
        labels, at = (one.file, one.subject), int(one.ends.timestamp())
        ends[labels] = min(ends.get(labels, at), at)
    for labels, at in ends.items():
        out.add(metrics.CERTIFICATE_END, at, *labels)


async def collect_topics(broker: Broker, totals: TopicTotals, most: int, out: Exposition, pace: Pace) -> int:
    """Topics and partitions, of `most` partitions at most; returns how many topics have no rows."""
    share = most // _SHARES
    topics = sorted(broker.topics, key=lambda topic: (len(topic.partitions) > share, topic.name))
    present: dict[bytes, tuple[int, int, int]] = {}
    ended = {member.id for member in broker.cluster.members if broker.cluster.has_ended(member.incarnation)}
    leaders = partitions = under_replicated = offline = left_out = 0
    for topic in topics:
        shown = len(topic.partitions) <= most
        most -= len(topic.partitions) if shown else 0
        left_out += not shown
        counts = (0, 0, 0)
        for partition in topic.partitions:
            high_watermark, log = partition.high_watermark, partition.log
            counts = _sum(counts, (high_watermark.records, high_watermark.written, high_watermark.fetched))
            offline += _is_offline(broker, topic, partition, ended)
            if partition.leadership.leads:
                leaders += 1
                under_replicated += _is_under_replicated(broker, topic, partition)
                if shown:
                    labels = write_labels(metrics.LOG_END, topic.name, str(partition.index))
                    out.add_labelled(metrics.LOG_END, log.end, labels)
                    out.add_labelled(metrics.LOG_START, log.start, labels)
                    out.add_labelled(metrics.LOG_SIZE, log.size, labels)
                    out.add_labelled(metrics.HIGH_WATERMARK, high_watermark.offset, labels)
            if pace.due():
                await pace.turn()
        partitions += len(topic.partitions)
        present[topic.id] = counts
        if shown:
            _add_counts(out, counts, topic.name)
    _add_counts(out, totals.update(present))
    out.add(metrics.TOPICS, len(topics))
    out.add(metrics.ALL_PARTITIONS, partitions)
    out.add(metrics.LEADERS, leaders)
    out.add(metrics.PARTITIONS, leaders + await _collect_copies(broker, out, pace))
    out.add(metrics.UNDER_REPLICATED, under_replicated)
    out.add(metrics.OFFLINE, offline)
    return left_out


def _is_offline(broker: Broker, topic: Topic, partition: Partition, ended: Set[int]) -> bool:
    """Whether nobody leads a partition, or a broker does that has ended, or gives this one nothing to copy."""
    leader, _ = broker.find_leader(topic, partition.index)
    if broker.replication is None:
        return leader < 0 or leader in ended
    return not broker.replication.is_led(partition.name, leader)


def _is_under_replicated(broker: Broker, topic: Topic, partition: Partition) -> bool:
    """Whether a copy of a partition that this broker leads does not keep up, whatever the metadata log knows of it."""
    if broker.replication is None:
        return False
    return len(broker.replication.replicas.find_in_sync(partition.name)) < len(topic.replicas[partition.index])


async def _collect_copies(broker: Broker, out: Exposition, pace: Pace) -> int:
    """The copies that are kept here of partitions that other brokers lead; returns how many there are."""
    many = 0
    for name, replica in list(broker.replication.replicas.logs.items()) if broker.replication is not None else ():
        if replica.progress is None:
            many += 1
            topic, _, index = name.rpartition(":")
            out.add(metrics.FETCHER_LAG, replica.lag, topic, index)
        if pace.due():
            await pace.turn()
    return many


async def collect_groups(broker: Broker, most: int, out: Exposition, pace: Pace) -> int:
    """The groups that this broker coordinates, `most` committed offsets at most; returns how many have no rows."""
    share = most // _SHARES
    groups = broker.groups.partitions.runtimes
    runtimes = sorted(groups, key=lambda runtime: (len(runtime.offsets.stored) > share, runtime.id))
    out.add(metrics.GROUPS, len(runtimes))
    left_out = 0
    for runtime in runtimes:
        many = len(runtime.offsets.stored)
        if many <= most:
            most -= many
            await _collect_group(broker, runtime, out, pace)
        else:
            left_out += many
    return left_out


async def _collect_group(broker: Broker, runtime: GroupRuntime, out: Exposition, pace: Pace) -> None:
    for partition, committed in list(runtime.offsets.stored.items()):
        topic = broker.topics.by_id(committed.topic_id)
        if topic is not None:
            labels = write_labels(metrics.LAG, runtime.id, partition.topic, str(partition.partition))
            out.add_labelled(metrics.COMMITTED, committed.offset, labels)
            lag = find_lag(topic, partition.partition, committed.offset)
            if lag is not None:
                out.add_labelled(metrics.LAG, lag, labels)
        if pace.due():
            await pace.turn()


def _add_counts(out: Exposition, counts: tuple[int, int, int], *labels: str) -> None:
    for metric, count in zip((metrics.MESSAGES_IN, metrics.BYTES_IN, metrics.BYTES_OUT), counts, strict=True):
        out.add(metric, count, *labels)


def _sum(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
