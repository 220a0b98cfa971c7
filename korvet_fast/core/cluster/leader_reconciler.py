"""Taking over the partitions that fall to this broker, and giving up those that fall to another one."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.leader_directory import LeaderDirectory
from korvet_fast.core.cluster.lease import Lease
from korvet_fast.core.eager import gather_bounded
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.topics.topic import Topic
from korvet_fast.rate_limited_log import RateLimitedLog

_NAMED = 5  # partitions in a line of the log
_TAKEN_FOR_GONE = "the other brokers took this one for gone"


class NamedLeaders(Protocol):
    """The leaders of logs, where an operator names them."""

    def find_leader(self, log: str) -> int:
        """The id of the broker that is to lead a log."""

    def leads(self, log: str) -> bool:
        """Whether this broker has a log as its leader: it may have been taken away, and given back, meanwhile."""


class LeaderReconciler:
    """Makes this broker lead the partitions that it is to lead, and no others.

    The preferred leader acquires a partition at once. The present leader goes on until it learns of that, so there is
    hardly a moment without a leader.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: LeaderDirectory,
        log: RateLimitedLog,
        named: NamedLeaders | None = None,
    ) -> None:
        self._cluster = cluster
        self._directory = directory
        self._log = log
        self._named = named
        self._lease = Lease(cluster)
        self._reconciling = asyncio.Lock()

    @property
    def is_valid(self) -> bool:
        """Whether this broker may act as the leader: no other broker can have taken its partitions over yet."""
        return self._named is not None or self._lease.is_valid

    def renounce(self, topics: Iterable[Topic]) -> bool:
        """If the other brokers took this one for dead, resign from all partitions. Returns whether they did.

        `topics`: all topics of the cluster.
        """
        if not self._lease.renew() or self._named is not None:
            return False
        led = [one for topic in topics for one in topic.partitions if one.leadership.leads]
        for partition in led:
            partition.leader.resign(_TAKEN_FOR_GONE)
        self._tell(f"{_TAKEN_FOR_GONE}, so it no longer leads", [partition.name for partition in led])
        return True

    async def reconcile(self, topics: Iterable[Topic]) -> None:
        """Lead the partitions of these topics that this broker is to lead; resign from those that another one leads."""
        async with self._reconciling:
            before, missing = list[str](), list[Partition]()
            for topic in topics:
                led = [partition for partition in topic.partitions if partition.leadership.leads]
                missing += await self._compare(topic)
                before += [partition.name for partition in led if not partition.leadership.leads]
            await gather_bounded(missing, lambda partition: partition.leader.become_leader())
            if self._cluster.is_shared:  # alone, a broker leads everything always
                self._tell("leads", [partition.name for partition in missing if partition.leadership.knows_end])
                self._tell("no longer leads", before)

    async def _compare(self, topic: Topic) -> list[Partition]:
        """Resign from what others lead; returns the partitions to acquire."""
        if self._named is not None:
            return await self._compare_named(topic, self._named)
        own, is_member = self._cluster.id, self._cluster.is_member
        targets = self._cluster.preferred_leaders(topic.id, len(topic.partitions))
        missing = []
        for partition, target in zip(topic.partitions, targets, strict=True):
            if partition.leadership.leads:
                epoch, broker = self._directory.find(topic.id, partition.index)
                if epoch > partition.leadership.epoch >= 0:
                    whom = f"broker {broker}" if broker >= 0 else "a broker that is gone"
                    partition.leader.resign(f"{partition.name} was taken over by {whom}")
                elif not is_member:
                    partition.leader.resign("the other brokers take this one for gone")
            if target == own and not partition.leadership.leads:
                missing.append(partition)  # also where a broker that should not lead has just led
        return missing

    async def _compare_named(self, topic: Topic, named: NamedLeaders) -> list[Partition]:
        """As `_compare`, where an operator names the leaders. Others have their turn between."""
        missing = []
        pace = BackgroundPace()
        for partition in list(topic.partitions):
            if pace.due():
                await pace.turn()
            leader = named.find_leader(partition.name)
            if leader != self._cluster.id:
                if partition.leadership.leads:
                    partition.leader.resign(f"{partition.name} is led by broker {leader} now")
                continue
            # One that does not know its end finds out by itself.
            if partition.leadership.knows_end and not named.leads(partition.name):
                partition.leader.resign(f"{partition.name} was to be led by another broker meanwhile")
            if not partition.leadership.leads:
                missing.append(partition)
        return missing

    def _tell(self, what: str, partitions: Sequence[str]) -> None:
        """Log partitions whose leader changed, all in one line."""
        if partitions:
            more = f" and {len(partitions) - _NAMED:,} more" if len(partitions) > _NAMED else ""
            noun = "partition" if len(partitions) == 1 else "partitions"
            self._log.tell(what, f"{what} {len(partitions)} {noun}: {', '.join(partitions[:_NAMED])}{more}")
