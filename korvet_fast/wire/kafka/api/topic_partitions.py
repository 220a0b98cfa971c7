"""Partitions of the consumer protocol, as its messages list them: by topic, each in order."""

from korvet_fast.core.groups.consumer.members import Partitions


def by_topic(partitions: Partitions) -> list[tuple[bytes, list[int]]]:
    """(topic id, its partitions), all in order. Numbers are sorted much faster than pairs."""
    topics: dict[bytes, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [(topic, sorted(topics[topic])) for topic in sorted(topics)]
