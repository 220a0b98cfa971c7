"""Topics whose records are being removed: nobody sees them any more, and their names are taken until that is over.

One broker removes them, whose incarnation is in the topic's document. If it is gone before the end, one of the others
takes its place by compare-and-set.
"""

from typing import Protocol

from korvet_fast.core.eager import gather_bounded
from korvet_fast.core.topics.registry import TopicRegistry
from korvet_fast.core.topics.topic import Document, Topic


class Members(Protocol):
    """The brokers of the store (`core/cluster/cluster.py`)."""

    @property
    def incarnation(self) -> str: ...

    def has(self, incarnation: str) -> bool: ...

    def forget(self, topic: bytes) -> None: ...


class TopicDeletions:
    """The deletions that this broker knows of and that are not known to have ended."""

    def __init__(self, registry: TopicRegistry, members: Members) -> None:
        self._registry = registry
        self._members = members
        self._topics: dict[bytes, Topic] = {}  # by id

    def __len__(self) -> int:
        return len(self._topics)

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._topics

    def add(self, topic: Topic) -> None:
        """The topic's document says that it is deleted."""
        self._topics[topic.id] = topic

    async def end(self) -> None:
        """Remove what is left, but for topics that another broker is at work on. Raises `StoreError`."""
        for topic in list(self._topics.values()):
            if await self._take(topic):
                await self.drop(topic)

    async def _take(self, topic: Topic) -> bool:
        """Whether this broker is to remove the topic's records; from now on, where the one before it is gone."""
        own, packed = self._members.incarnation, await self._registry.find(topic.name)
        document = Document.unpack(packed) if packed is not None else None
        if packed is None or document is None or document.id != topic.id:  # another broker has ended it
            del self._topics[topic.id]
            return False
        if document.deleter != own:
            if self._members.has(document.deleter):
                return False
            taken = document._replace(version=document.version + 1, deleter=own).pack()
            if not await self._registry.save(topic.name, taken, packed):
                return False  # another broker was faster
            packed = taken
        topic.packed = packed
        return True

    async def drop(self, topic: Topic) -> None:
        """Remove the topic's records, then its document. Raises `StoreError`; what is left is removed by `end`."""
        await gather_bounded(topic.partitions, lambda partition: partition.leader.drop())
        await self._registry.save(topic.name, None, topic.packed)
        self._topics.pop(topic.id, None)
