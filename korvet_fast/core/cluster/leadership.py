"""Taking over the partitions that fall to this broker, and giving up those that fall to another one."""

import asyncio
from collections.abc import Iterable

from korvet_fast.core.cluster.claims import Claims
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.standing import Standing
from korvet_fast.core.eager import each
from korvet_fast.core.partition import Partition
from korvet_fast.core.topic import Topic


class Leadership:
    """What the view of the cluster comes to for partitions.

    Who is to lead a partition takes it over at once; who led it goes on until it learns that it was taken over. So
    there is hardly a moment in which nobody leads.
    """

    def __init__(self, cluster: Cluster, claims: Claims) -> None:
        self._cluster = cluster
        self._claims = claims
        self._standing = Standing(cluster)
        self._settling = asyncio.Lock()

    @property
    def valid(self) -> bool:
        """Whether what is led here may be relied on."""
        return self._standing.valid

    def renounce(self, topics: Iterable[Topic]) -> bool:
        """Give up all of these, which must be all there are, if the others took this broker for dead; whether so."""
        if not self._standing.renew():
            return False
        for partition in (one for topic in topics for one in topic.partitions if one.led):
            partition.resign("the other brokers took this one for gone")
        return True

    async def settle(self, topics: Iterable[Topic]) -> None:
        """Lead what falls to this broker in these topics, and nothing that another one leads by now."""
        async with self._settling:
            missing = [partition for topic in topics for partition in self._compare(topic)]
            await each(missing, Partition.lead)

    def _compare(self, topic: Topic) -> list[Partition]:
        """Give up what others lead; what is to be taken over."""
        own, there = self._cluster.id, self._cluster.there
        targets = self._cluster.targets(topic.id, len(topic.partitions))
        missing = []
        for partition, target in zip(topic.partitions, targets, strict=True):
            if partition.led:
                epoch, broker = self._claims.find(topic.id, partition.index)
                if epoch > partition.leader_epoch >= 0:
                    partition.resign(f"{partition.log} is led by broker {broker}")
                elif not there:
                    partition.resign("the other brokers take this one for gone")
            if target == own and not partition.led:
                missing.append(partition)  # be it taken back from one that did not know that it was not its turn
        return missing
