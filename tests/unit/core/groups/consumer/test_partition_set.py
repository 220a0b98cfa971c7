"""Sets of partitions do what frozensets do, whatever a client names, and cost next to nothing for many partitions."""

from collections.abc import Set

import hypothesis.strategies as st
from hypothesis import given

from korvet_fast.core.groups.consumer.partition_set import NamedPartitions, Partitions, TopicIdPartition
from twin.profile import examples

TOPICS = (b"a", b"b", b"c")
PLAIN = st.frozensets(st.builds(TopicIdPartition, st.sampled_from(TOPICS), st.integers(0, 40)), max_size=20)
ROWS = st.lists(
    st.tuples(st.sampled_from((*TOPICS, b"gone")), st.lists(st.integers(-2, 42) | st.just(2**31 - 1), max_size=8)),
    max_size=4,
)


@given(PLAIN, PLAIN)
@examples(300)
def test_they_do_what_frozensets_do(one: frozenset[TopicIdPartition], other: frozenset[TopicIdPartition]) -> None:
    first, second = Partitions(one), Partitions(other)
    assert (first, len(first), bool(first)) == (one, len(one), bool(one))
    assert sorted(first) == sorted(one)
    for found in (first & second, first & other, one & second):
        assert found == one & other
    for found in (first | second, first | other, one | second):
        assert found == one | other
    for found in (first - second, first - other, one - second, first.without(second.masks)):
        assert found == one - other
    assert (first == second) == (one == other) == (hash(first) == hash(second))
    assert first.covers(second) == first.covers(other) == (other <= one)
    assert first.meets(second) == first.meets(other) == (not one.isdisjoint(other))
    assert [TopicIdPartition(topic, index) for topic, row in first.list_rows() for index in row] == sorted(one)
    assert all((partition in first) == (partition in one) for partition in other)


@given(PLAIN, st.integers(-1, 25))
@examples(200)
def test_the_first_ones_are_taken_in_order(one: frozenset[TopicIdPartition], most: int) -> None:
    assert sorted(Partitions(one).take(most)) == sorted(one)[: max(most, 0)]


@given(PLAIN, ROWS)
@examples(300)
def test_what_a_client_names_is_compared_and_takes_no_memory(
    one: frozenset[TopicIdPartition], rows: list[tuple[bytes, list[int]]]
) -> None:
    named: Set[TopicIdPartition] = NamedPartitions(rows)
    plain = frozenset(TopicIdPartition(topic, index) for topic, row in rows for index in row)
    assert Partitions(one).covers(named) == (plain <= one)
    assert Partitions(one).meets(named) == (not one.isdisjoint(plain))
    assert bool(named) == bool(plain)


def test_many_partitions_are_a_number_for_each_topic() -> None:
    many = Partitions.of({b"a": (1 << 20_000) - 1})
    assert len(many) == 20_000
    assert many.list_rows() == [(b"a", list(range(20_000)))]
    assert Partitions(many) == many
    assert many.masks == {b"a": (1 << 20_000) - 1}
    assert (many - many).masks == {}
