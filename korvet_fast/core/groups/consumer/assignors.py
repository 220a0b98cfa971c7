"""Who of a consumer group is to have which partitions. Pure: members and topics in, a target for each member out.

Each partition goes to exactly one member that reads its topic, if there is one. Members keep what they had wherever
the balance allows it. Source: KIP-848 (uniform and range), and the rules of Kafka's assignors of these names.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heapreplace
from typing import Final, NamedTuple, TypeAlias

from korvet_fast.core.groups.consumer.members import Part, Parts


class Subscriber(NamedTuple):
    """A member to be assigned to. `topics`: the ids of those it reads; `had`: its former target."""

    topics: frozenset[bytes]
    had: Parts = frozenset()
    instance_id: str | None = None


Members: TypeAlias = Mapping[str, Subscriber]  # by member id
Counts: TypeAlias = Mapping[bytes, int]  # by topic id: how many partitions it has
Target: TypeAlias = dict[str, Parts]  # by member id


def assign_range(members: Members, counts: Counts) -> Target:
    """Of each topic the members get neighbouring partitions, in the order of their names, the first ones one more.

    So partitions of the same number of topics with as many partitions and the same readers go to the same member.
    Static members go first, by instance id: their ids change when they come back.
    """
    ordered = sorted(members, key=lambda name: (members[name].instance_id is None, members[name].instance_id or name))
    found: dict[str, list[Part]] = {name: [] for name in members}
    for topic, count in counts.items():
        readers = [name for name in ordered if topic in members[name].topics]
        start = 0
        for turn, name in enumerate(readers):
            share = count // len(readers) + (turn < count % len(readers))
            found[name] += [Part(topic, index) for index in range(start, start + share)]
            start += share
    return {name: frozenset(parts) for name, parts in found.items()}


def assign_uniform(members: Members, counts: Counts) -> Target:
    """All members get as many partitions, within one, as far as what they read allows."""
    if len({one.topics for one in members.values()}) <= 1:
        return _share(members, counts)
    return _level(members, counts)


ASSIGNORS: Final[Mapping[str, Callable[[Members, Counts], Target]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}


def _share(members: Members, counts: Counts) -> Target:
    """All read the same: everybody has the same share, and whoever had more keeps the one that may be over."""
    topics = next((one.topics for one in members.values()), frozenset())
    rest = {Part(topic, index): None for topic in sorted(topics & counts.keys()) for index in range(counts[topic])}
    if not members:
        return {}
    share, over = divmod(len(rest), len(members))
    found: dict[str, list[Part]] = {}
    for name, member in members.items():
        kept = sorted(part for part in member.had if part in rest)
        more = over > 0 and len(kept) > share
        over -= more
        found[name] = kept[: share + more]
        for part in found[name]:
            del rest[part]
    _deal(found, iter(rest), share)
    return {name: frozenset(parts) for name, parts in found.items()}


def _deal(found: dict[str, list[Part]], rest: Iterator[Part], share: int) -> None:
    """Deal out the rest, one to each in turn, so that neighbours go to different members."""
    for goal in (share, share + 1):
        hungry = [parts for parts in found.values() if len(parts) < goal]
        while hungry:
            for parts in hungry:
                part = next(rest, None)
                if part is None:
                    return
                parts.append(part)
            hungry = [parts for parts in hungry if len(parts) < goal]


def _level(members: Members, counts: Counts) -> Target:
    """Members read different topics: in the end no partition has a reader with two fewer than who has it."""
    readers = {topic: [name for name, one in members.items() if topic in one.topics] for topic in counts}
    found: dict[str, dict[bytes, list[Part]]] = {name: {} for name in members}
    load = dict.fromkeys(members, 0)
    taken: set[Part] = set()
    for name, member in members.items():
        for part in sorted(member.had):
            if part.topic in member.topics and part.partition < counts.get(part.topic, 0) and part not in taken:
                taken.add(part)
                found[name].setdefault(part.topic, []).append(part)
                load[name] += 1
    # Topics that few read first: the others can make up for it.
    for topic in sorted(counts, key=lambda one: (len(readers[one]), one)):
        heap = [(load[name], turn, name) for turn, name in enumerate(readers[topic])]
        heapify(heap)
        for part in (Part(topic, index) for index in range(counts[topic])):
            if part not in taken and heap:
                held, turn, name = heap[0]
                found[name].setdefault(topic, []).append(part)
                load[name] += 1
                heapreplace(heap, (held + 1, turn, name))
    while any(_even_out(topic, readers[topic], members, found, load) for topic in counts):
        pass  # each move makes the squares of the loads less in sum, so there is an end
    return {name: frozenset(part for parts in own.values() for part in parts) for name, own in found.items()}


def _even_out(
    topic: bytes,
    readers: list[str],
    members: Members,
    found: dict[str, dict[bytes, list[Part]]],
    load: dict[str, int],
) -> bool:
    """Move partitions of a topic from those who have most to those who have least; whether there was anything to do."""
    moved = False
    while holders := [name for name in readers if found[name].get(topic)]:
        rich, poor = max(holders, key=load.__getitem__), min(readers, key=load.__getitem__)
        if load[rich] - load[poor] < 2:
            break
        own, had = found[rich][topic], members[rich].had
        part = next((part for part in own if part not in had), own[-1])  # best one that nobody has to give up
        own.remove(part)
        found[poor].setdefault(topic, []).append(part)
        load[rich] -= 1
        load[poor] += 1
        moved = True
    return moved
