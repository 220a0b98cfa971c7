"""The assignors: they decide which member of a consumer group gets which partitions. Pure.

Each partition goes to exactly one member that reads its topic, if there is one. Members keep their partitions where
the balance allows it. Source: KIP-848 (uniform and range), and the rules of Kafka's assignors of these names.
"""

from collections.abc import Callable, Mapping, Set
from functools import partial
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, NamedTuple, TypeAlias

from korvet_fast.core.groups.consumer.partition_set import Partitions, TopicIdPartition, make_mask


class Subscriber(NamedTuple):
    """A member that gets partitions. `topics`: the ids of the topics that it reads. `had`: its former target."""

    topics: frozenset[bytes]
    had: Set[TopicIdPartition] = Partitions()
    instance_id: str | None = None


Members: TypeAlias = Mapping[str, Subscriber]  # by member id
Counts: TypeAlias = Mapping[bytes, int]  # by topic id: how many partitions it has
Target: TypeAlias = dict[str, Partitions]  # by member id


def assign_range(members: Members, counts: Counts) -> Target:
    """Each member gets a range of each topic, in the order of member ids; the first members get one partition more.

    So for topics with the same readers and as many partitions, equal partition numbers go to the same member. Static
    members come first, by instance id: their member ids change when they come back.
    """
    ordered = sorted(members, key=lambda name: (members[name].instance_id is None, members[name].instance_id or name))
    found: dict[str, dict[bytes, int]] = {name: {} for name in members}
    for topic, count in counts.items():
        readers = [name for name in ordered if topic in members[name].topics]
        start = 0
        for turn, name in enumerate(readers):
            share = count // len(readers) + (turn < count % len(readers))
            found[name][topic] = ((1 << share) - 1) << start
            start += share
    return {name: Partitions.of(masks) for name, masks in found.items()}


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
    rest = Partitions.of({topic: (1 << counts[topic]) - 1 for topic in topics & counts.keys()})
    if not members:
        return {}
    share, over = divmod(len(rest), len(members))
    found: dict[str, Partitions] = {}
    for name, member in members.items():
        kept = rest & member.had
        more = over > 0 and len(kept) > share
        over -= more
        found[name] = kept.take(share + more)
        rest = rest - found[name]
    _deal(found, rest, share)
    return found


def _deal(found: Target, rest: Partitions, share: int) -> None:
    """Deal out the rest, one partition to each member in turn: neighbours go to different members."""
    left, start = rest.list_rows(), 0
    sizes = {name: len(partitions) for name, partitions in found.items()}
    dealt: dict[str, list[range]] = {name: [] for name in found}  # of places among the rest
    many_left = len(rest)
    for goal in (share, share + 1):
        hungry = [name for name, size in sizes.items() if size < goal]
        while hungry and start < many_left:
            rounds = min(goal - sizes[name] for name in hungry)  # in which each of these members gets one
            many = len(hungry)
            for turn, name in enumerate(hungry):
                places = range(start + turn, min(start + many * rounds, many_left), many)
                dealt[name].append(places)
                sizes[name] += len(places)
            start += many * rounds
            hungry = [name for name in hungry if sizes[name] < goal]
    for name, own in dealt.items():
        if own:
            found[name] = found[name] | _pick(left, own)


def _pick(rows: list[tuple[bytes, list[int]]], places: list[range]) -> Partitions:
    """The partitions at these places, which rise, among those of all rows."""
    masks: dict[bytes, int] = {}
    first = at = 0
    for topic, indexes in rows:
        end, picked = first + len(indexes), []
        while at < len(places) and places[at].start < end:
            here = places[at]
            until = min(here.stop, end)
            picked += indexes[here.start - first : until - first : here.step]
            passed = len(range(here.start, until, here.step))
            places[at] = here[passed:]
            if places[at]:
                break
            at += 1
        if picked:
            masks[topic] = make_mask(picked)
        first = end
    return Partitions.of(masks)


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
        every = map(partial(TopicIdPartition, topic), range(counts[topic]))
        free = [partition for partition in every if partition not in taken]
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
        name: Partitions(partition for partitions in own.values() for partition in partitions)
        for name, own in found.items()
    }


def _order_by_load(readers: list[str], load: dict[str, int]) -> list[tuple[int, int, str]]:
    """A heap of these members: fewest partitions first, and of several the one that stands first."""
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
            heappop(givers)  # this giver has none left, or has taken one
        elif least != load[poor]:
            heappop(takers)  # this taker has given one, and is in the heap again with its new count
        elif load[rich] - least < 2:
            break
        else:
            # The last is the best: partitions that the member did not have before come behind those that it had.
            found[poor].setdefault(topic, []).append(own.pop())
            load[rich] -= 1
            load[poor] += 1
            heapreplace(givers, (less + 1, turn, rich))
            heapreplace(takers, (least + 1, place, poor))
            heappush(takers, (load[rich], turn, rich))
            moved = True
    return moved
