"""The assignors: they decide which member of a consumer group gets which partitions. Pure.

Each partition goes to exactly one member that reads its topic, if there is one. Members keep their partitions where
the balance allows it. Source: KIP-848 (uniform and range), and the rules of Kafka's assignors of these names.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from korvet_fast.core.groups.consumer.members import Partitions, TopicIdPartition


class Subscriber(NamedTuple):
    """A member that gets partitions. `topics`: the ids of the topics that it reads. `had`: its former target."""

    topics: frozenset[bytes]
    had: Partitions = frozenset()
    instance_id: str | None = None


Members: TypeAlias = Mapping[str, Subscriber]  # by member id
Counts: TypeAlias = Mapping[bytes, int]  # by topic id: how many partitions it has
Target: TypeAlias = dict[str, Partitions]  # by member id


@lru_cache(maxsize=32)  # groups that read the same large topics share these objects
def _partitions_of(topic: bytes, count: int) -> tuple[TopicIdPartition, ...]:
    return tuple(TopicIdPartition(topic, index) for index in range(count))


def forget_partitions() -> None:
    """Free the objects that groups share: no group has members."""
    _partitions_of.cache_clear()


def assign_range(members: Members, counts: Counts) -> Target:
    """Each member gets a range of each topic, in the order of member ids; the first members get one partition more.

    So for topics with the same readers and as many partitions, equal partition numbers go to the same member. Static
    members come first, by instance id: their member ids change when they come back.
    """
    ordered = sorted(members, key=lambda name: (members[name].instance_id is None, members[name].instance_id or name))
    found: dict[str, list[TopicIdPartition]] = {name: [] for name in members}
    for topic, count in counts.items():
        readers = [name for name in ordered if topic in members[name].topics]
        start = 0
        for turn, name in enumerate(readers):
            share = count // len(readers) + (turn < count % len(readers))
            found[name] += _partitions_of(topic, count)[start : start + share]
            start += share
    return {name: frozenset(partitions) for name, partitions in found.items()}


def assign_uniform(members: Members, counts: Counts) -> Target:
    """The members' numbers of partitions differ by one at most, as far as their subscriptions allow."""
    if len({one.topics for one in members.values()}) <= 1:
        return _share(members, counts)
    return _level(members, counts)


ASSIGNORS: Final[Mapping[str, Callable[[Members, Counts], Target]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}


def _share(members: Members, counts: Counts) -> Target:
    """All members read the same topics: each gets an equal share. Those that had more keep the partitions left over."""
    topics = next((one.topics for one in members.values()), frozenset())
    rest = dict.fromkeys(
        chain.from_iterable(_partitions_of(topic, counts[topic]) for topic in sorted(topics & counts.keys()))
    )
    if not members:
        return {}
    share, over = divmod(len(rest), len(members))
    found: dict[str, list[TopicIdPartition]] = {}
    for name, member in members.items():
        kept = sorted(member.had & rest.keys())
        more = over > 0 and len(kept) > share
        over -= more
        found[name] = kept[: share + more]
        for partition in found[name]:
            del rest[partition]
    _deal(found, list(rest), share)
    return {name: frozenset(partitions) for name, partitions in found.items()}


def _deal(found: dict[str, list[TopicIdPartition]], rest: list[TopicIdPartition], share: int) -> None:
    """Deal out the rest, one partition to each member in turn: neighbours go to different members."""
    start = 0
    for goal in (share, share + 1):
        hungry = [partitions for partitions in found.values() if len(partitions) < goal]
        while hungry and start < len(rest):
            rounds = min(goal - len(partitions) for partitions in hungry)  # in which each of these members gets one
            many = len(hungry)
            for turn, partitions in enumerate(hungry):
                partitions += rest[start + turn : start + many * rounds : many]
            start += many * rounds
            hungry = [partitions for partitions in hungry if len(partitions) < goal]


def _level(members: Members, counts: Counts) -> Target:
    """Members read different topics. At the end, no reader of a partition has two fewer partitions than its owner."""
    readers = {topic: [name for name, one in members.items() if topic in one.topics] for topic in counts}
    found: dict[str, dict[bytes, list[TopicIdPartition]]] = {name: {} for name in members}
    load = dict.fromkeys(members, 0)
    taken: set[TopicIdPartition] = set()
    for name, member in members.items():
        for partition in sorted(member.had):
            topic, index = partition
            if topic in member.topics and index < counts.get(topic, 0) and partition not in taken:
                taken.add(partition)
                found[name].setdefault(topic, []).append(partition)
                load[name] += 1
    # Topics with few readers first: topics with many readers level the loads afterwards.
    for topic in sorted(counts, key=lambda one: (len(readers[one]), one)):
        free = [partition for partition in _partitions_of(topic, counts[topic]) if partition not in taken]
        if free and readers[topic]:
            heap = _order_by_load(readers[topic], load)
            for partition in free:
                held, turn, name = heap[0]
                found[name].setdefault(topic, []).append(partition)
                load[name] += 1
                heapreplace(heap, (held + 1, turn, name))
    while [topic for topic in counts if _even_out(topic, readers[topic], found, load)]:
        pass  # each move lowers the sum of the squared loads, so this ends
    return {
        name: frozenset(partition for partitions in own.values() for partition in partitions)
        for name, own in found.items()
    }


def _order_by_load(readers: list[str], load: dict[str, int]) -> list[tuple[int, int, str]]:
    """A heap of these members: who has least comes first, and of those the one that stands first."""
    heap = [(load[name], turn, name) for turn, name in enumerate(readers)]
    heapify(heap)
    return heap


def _even_out(
    topic: bytes, readers: list[str], found: dict[str, dict[bytes, list[TopicIdPartition]]], load: dict[str, int]
) -> bool:
    """Move partitions of a topic from readers with most to readers with fewest; returns whether any was to be moved.

    A reader that took a partition need not give one: no reader has two fewer from then on.
    """
    givers = [(-load[name], turn, name) for turn, name in enumerate(readers) if found[name].get(topic)]
    if not givers or -min(givers)[0] - min(map(load.__getitem__, readers)) < 2:
        return False
    moved = False
    heapify(givers)
    takers = _order_by_load(readers, load)
    while givers:
        less, turn, rich = givers[0]
        least, place, poor = takers[0]
        own = found[rich][topic]
        if not own or -less != load[rich]:
            heappop(givers)  # it has none left, or has taken one
        elif least != load[poor]:
            heappop(takers)  # it has given one, and is there again with what it has now
        elif load[rich] - least < 2:
            break
        else:
            # The last is the best: what the member did not have before comes behind what it had.
            found[poor].setdefault(topic, []).append(own.pop())
            load[rich] -= 1
            load[poor] += 1
            heapreplace(givers, (less + 1, turn, rich))
            heapreplace(takers, (least + 1, place, poor))
            heappush(takers, (load[rich], turn, rich))
            moved = True
    return moved
