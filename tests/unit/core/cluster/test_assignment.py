"""Who leads what: everybody on the list, evenly, and little moves."""

import random

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.cluster.assignment import assign

topics = st.binary(min_size=16, max_size=16)
brokers = st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=9).map(sorted)


@given(topics, st.integers(0, 60), brokers)
def test_every_partition_has_a_leader_and_nobody_more_than_an_even_share(
    topic: bytes, partitions: int, live: list[int]
) -> None:
    leaders = assign(topic, partitions, live)
    assert len(leaders) == partitions
    assert set(leaders) <= set(live)
    assert all(leaders.count(one) <= -(-partitions // len(live)) for one in live)


@given(topics, st.integers(0, 60), brokers, st.randoms())
def test_all_who_know_of_the_same_brokers_agree(
    topic: bytes, partitions: int, live: list[int], chance: random.Random
) -> None:
    shuffled = list(live)
    chance.shuffle(shuffled)
    assert assign(topic, partitions, live) == assign(topic, partitions, shuffled)


def test_the_rule_is_the_same_in_every_version() -> None:
    topic = bytes(range(16))
    assert assign(topic, 12, [1, 2, 3]) == [3, 2, 3, 1, 2, 2, 2, 3, 3, 1, 1, 1]
    assert assign(topic, 12, [1, 3]) == [3, 3, 3, 1, 1, 3, 3, 3, 1, 1, 1, 1]


def test_when_a_broker_goes_little_but_its_own_moves() -> None:
    chance = random.Random(1)
    moved = total = 0
    for _ in range(300):
        topic = chance.randbytes(16)
        before, after = assign(topic, 12, [1, 2, 3]), assign(topic, 12, [1, 3])
        moved += sum(old not in (new, 2) for old, new in zip(before, after, strict=True))
        total += 12
    assert moved < total / 12


def test_topics_of_one_partition_are_spread() -> None:
    chance = random.Random(2)
    leaders = [assign(chance.randbytes(16), 1, [1, 2, 3])[0] for _ in range(900)]
    assert all(240 < leaders.count(one) < 360 for one in (1, 2, 3))
