"""The topics that clients of 0.7 see: those of the format `legacy`, each with this broker's partitions."""

import re
from typing import Final

from korvet_fast.core.partition.legacy_partition import LegacyPartition
from korvet_fast.core.topics.topic import Topic
from korvet_fast.wire.legacy.session import Session

_LONGEST: Final = 255  # characters of a name
_ILLEGAL: Final = re.compile("[/\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def is_legal(name: str) -> bool:
    """Whether 0.7.2 takes this for a topic's name."""
    return 0 < len(name) <= _LONGEST and name not in (".", "..") and not _ILLEGAL.search(name)


async def find_topic(session: Session, name: str) -> Topic | None:
    """The topic, of whatever format; None if there is none. Raises `StoreError`."""
    topics = session.broker.topics
    return topics.get(name) or await topics.find(name, session.changer)


def count_partitions(session: Session, name: str) -> int:
    """How many partitions a topic has that is made when somebody produces to it."""
    settings = session.broker.settings
    return settings.counts("topic.partition.count.map").get(name) or settings.number("num.partitions")


def has_partition(session: Session, name: str, topic: Topic | None, index: int) -> bool:
    """Whether there is, or would be, such a partition; none of a topic of another format."""
    if topic is None:
        return 0 <= index < count_partitions(session, name)
    return topic.config.legacy and 0 <= index < len(topic.partitions)


async def refresh_leadership(session: Session, topic: Topic, index: int) -> None:
    """Unless this broker leads the partition, learn of changes: another connection may be making the topic.

    Raises `StoreError`.
    """
    if not topic.partitions[index].leadership.leads:
        await session.broker.topics.refresh(session.changer)


def leader_partition(session: Session, topic: str, index: int) -> LegacyPartition:
    """A partition of a topic of the format `legacy`. Raises `KorvetError` if this broker does not lead it."""
    partition = session.broker.partition(topic, index)
    assert isinstance(partition, LegacyPartition)
    return partition
