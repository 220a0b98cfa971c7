"""Taking over the partitions that fall to this broker, and giving up those that fall to another one."""

import asyncio
from collections.abc import Iterable

from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.eager import each
from korvet_fast.core.partition import Partition
from korvet_fast.core.topic import Topic


class Leadership:
    """What the view of the cluster comes to for partitions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._settling = asyncio.Lock()

    async def settle(self, topics: Iterable[Topic]) -> None:
        """Lead what falls to this broker in these topics, and nothing else.

        A broker that leaves goes on with what it leads: until the others have taken it over, or it stops.
        """
        async with self._settling:
            missing = [partition for topic in topics for partition in self._compare(topic)]
            await each(missing, Partition.lead)

    def _compare(self, topic: Topic) -> list[Partition]:
        """Give up what others are to lead; what is to be taken over."""
        own = self._cluster.id
        missing = []
        leaders = self._cluster.leaders(topic.id, len(topic.partitions))
        for partition, leader in zip(topic.partitions, leaders, strict=True):
            if leader == own:
                if not partition.led:
                    missing.append(partition)
            elif partition.led and not self._cluster.leaving:
                partition.resign(f"{partition.log} is led by broker {leader}")
        return missing
