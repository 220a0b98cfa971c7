"""The assignors: everything is assigned, evenly, and nothing moves that need not."""

from collections.abc import Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given

from korvet_fast.core.groups.consumer.assignors import ASSIGNORS, Subscriber, assign_range, assign_uniform
from korvet_fast.core.groups.consumer.members import Partitions, TopicIdPartition
from twin.profile import examples

TOPICS = (b"a", b"b", b"c", b"d")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
PARTS = st.frozensets(st.builds(TopicIdPartition, st.sampled_from(TOPICS), st.integers(0, 12)), max_size=12)
NAMES = st.lists(st.sampled_from("zyxwvuts"), unique=True, max_size=6)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False) -> tuple[dict[str, Subscriber], dict[bytes, int]]:
    """Members, who may say to have had anything, even what others had too, and topics."""
    counts = draw(COUNTS)
    topics = st.frozensets(st.sampled_from(sorted(counts))) if counts else st.just(frozenset[bytes]())
    every = draw(topics)
    members = {name: Subscriber(every if equal else draw(topics), draw(PARTS)) for name in draw(NAMES)}
    return members, counts


def owners(target: Mapping[str, Partitions]) -> dict[TopicIdPartition, str]:
    found: dict[TopicIdPartition, str] = {}
    for name, partitions in target.items():
        for partition in partitions:
            assert found.setdefault(partition, name) == name, "one partition, two owners"
    return found


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
@given(group=groups())
@examples(200)
def test_each_partition_goes_to_one_member_that_reads_its_topic(
    assignor: str, group: tuple[dict[str, Subscriber], dict[bytes, int]]
) -> None:
    members, counts = group
    target = ASSIGNORS[assignor](members, counts)
    assert target.keys() == members.keys()
    found = owners(target)
    assert all(partition.topic_id in members[name].topics for partition, name in found.items())
    read = {topic for one in members.values() for topic in one.topics}
    assert found.keys() == {TopicIdPartition(topic, index) for topic in read for index in range(counts[topic])}


@given(group=groups(equal=True))
@examples(200)
def test_uniform_gives_members_that_read_the_same_as_many_each(
    group: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    members, counts = group
    sizes = [len(partitions) for partitions in assign_uniform(members, counts).values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(group=groups())
@examples(200)
def test_uniform_leaves_no_partition_where_another_reader_has_two_fewer(
    group: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    members, counts = group
    target = assign_uniform(members, counts)
    for partition, owner in owners(target).items():
        for name, one in members.items():
            if partition.topic_id in one.topics:
                assert len(target[owner]) - len(target[name]) < 2


@given(group=groups(equal=True), come=st.integers(0, 3), go=st.integers(0, 3))
@examples(200)
def test_uniform_moves_nothing_that_need_not_move(
    group: tuple[dict[str, Subscriber], dict[bytes, int]], come: int, go: int
) -> None:
    members, counts = group
    topics = next((one.topics for one in members.values()), frozenset[bytes]())
    before = assign_uniform(members, counts)
    staying = list(members)[go:]
    later = {name: Subscriber(topics, before[name]) for name in staying}
    later |= {f"new-{number}": Subscriber(topics) for number in range(come)}
    after = assign_uniform(later, counts)
    if not later:
        return
    share, over = divmod(sum(counts[topic] for topic in topics), len(later))
    kept = {name: len(before[name] & after[name]) for name in staying}
    for name in staying:  # everybody keeps all that a fair share leaves room for
        assert kept[name] >= min(len(before[name]), share)
    most = sum(min(len(before[name]), share) for name in staying)
    most += min(over, sum(len(before[name]) > share for name in staying))
    assert sum(kept.values()) == most


@given(group=groups())
@examples(200)
def test_uniform_made_again_from_its_own_target_changes_nothing(
    group: tuple[dict[str, Subscriber], dict[bytes, int]],
) -> None:
    members, counts = group
    target = assign_uniform(members, counts)
    again = {name: Subscriber(one.topics, target[name]) for name, one in members.items()}
    assert assign_uniform(again, counts) == target


class Counted(str):
    """A member's name that counts how often something of the member is looked up."""

    __slots__ = ()
    looks = 0

    def __hash__(self) -> int:
        Counted.looks += 1
        return super().__hash__()


class Had(Partitions):
    """A member's former partitions, which count how often they are asked for one."""

    def __contains__(self, partition: object) -> bool:
        Counted.looks += 1
        return super().__contains__(partition)


@pytest.mark.parametrize(("topics", "partitions"), [(1, 2000), (1000, 2)])
def test_uniform_looks_at_each_partition_a_few_times_when_all_of_one_member_has_to_move(
    topics: int, partitions: int
) -> None:
    counts = {b"%d" % topic: partitions for topic in range(topics)} | {b"other": 1}
    every = [TopicIdPartition(topic, index) for topic, count in counts.items() for index in range(count)]
    members = {Counted("a"): Subscriber(frozenset(counts), Had(every))}
    members |= {Counted(name): Subscriber(frozenset(counts) - {b"other"}) for name in "bcd"}
    Counted.looks = 0
    target = assign_uniform(members, counts)
    assert len(owners(target)) == len(every)
    assert Counted.looks < 30 * len(every)


def test_range_gives_neighbours_and_the_first_members_one_more() -> None:
    topics = frozenset((b"a", b"b"))
    target = assign_range({name: Subscriber(topics) for name in "yxz"}, {b"a": 7, b"b": 3})
    assert {name: sorted(partitions) for name, partitions in target.items()} == {
        "x": [(b"a", 0), (b"a", 1), (b"a", 2), (b"b", 0)],
        "y": [(b"a", 3), (b"a", 4), (b"b", 1)],
        "z": [(b"a", 5), (b"a", 6), (b"b", 2)],
    }


def test_range_has_static_members_in_the_order_of_their_instances_whatever_their_ids() -> None:
    topics = frozenset((b"a",))
    for first, second in (("p", "q"), ("q", "p")):
        members = {"b": Subscriber(topics), first: Subscriber(topics, instance_id="1")}
        members |= {second: Subscriber(topics, instance_id="2")}
        target = assign_range(members, {b"a": 3})
        assert [min(target[name]).partition for name in (first, second, "b")] == [0, 1, 2]


def test_uniform_spreads_what_is_left_of_a_topic_over_many_members() -> None:
    topics = frozenset((b"a", b"b"))
    target = assign_uniform({name: Subscriber(topics) for name in "xyz"}, {b"a": 3, b"b": 3})
    assert all({partition.topic_id for partition in partitions} == topics for partitions in target.values())
