"""A text group by itself: generations, assignments, fences, time."""

import json

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.groups.budget import GroupBudget
from korvet_fast.core.groups.config import TextConfig
from korvet_fast.core.groups.text.assignors import ASSIGNORS
from korvet_fast.core.groups.text.document import pack_text, unpack_text
from korvet_fast.core.groups.text.group import TextGroup, TextJoin, TextResult

CONFIG = TextConfig(GroupBudget(), session_timeout=10.0, max_size=3)


def join(group: TextGroup, member: str, now: float = 0.0, partitions: int = 4, topic: str = "t") -> TextResult:
    group.join(TextJoin(member, topic, partitions, None, "host"), "waiter", now)
    ((_, result),) = group.answers
    group.answers.clear()
    return result


def leave(group: TextGroup, member: str, generation: int) -> TextResult:
    group.leave(member, "t", generation, "waiter")
    ((_, result),) = group.answers
    group.answers.clear()
    return result


def test_a_silent_member_is_removed_when_its_time_is_over() -> None:
    group = TextGroup(CONFIG)
    join(group, "a", now=0.0)
    join(group, "b", now=5.0)
    assert group.deadline.next() == 10.0
    group.tick(9.9)
    assert set(group.members) == {"a", "b"}
    group.tick(10.0)
    assert set(group.members) == {"b"}
    assert (group.generation, group.deadline.next()) == (3, 15.0)
    assert group.heartbeat("b", "t", 2, 4, 11.0).error == "ILLEGAL_GENERATION"
    assert list(join(group, "b", now=11.0).assigned) == [0, 1, 2, 3]
    group.tick(21.0)
    assert group.is_empty
    assert group.deadline.next() is None


def test_every_request_of_a_member_keeps_it_alive() -> None:
    group = TextGroup(CONFIG)
    join(group, "a", now=0.0)
    assert not group.heartbeat("a", "t", 1, 4, 9.0).error
    group.tick(18.0)
    assert not group.commit("a", 1, [("t", 0)], 18.0)
    group.tick(27.0)
    assert group.in_use
    group.extend_deadlines(100.0)
    group.tick(127.0)
    assert group.in_use
    group.tick(128.0)
    assert group.is_empty


def test_a_stale_member_does_not_stay_for_its_heartbeats() -> None:
    group = TextGroup(CONFIG)
    join(group, "a", now=0.0)
    join(group, "b", now=0.0)
    assert group.heartbeat("a", "t", 1, 4, 9.0).error == "ILLEGAL_GENERATION"
    group.heartbeat("b", "t", 2, 4, 9.0)
    group.tick(10.0)
    assert set(group.members) == {"b"}


def test_more_partitions_begin_a_new_generation() -> None:
    group = TextGroup(CONFIG)
    join(group, "a")
    assert group.heartbeat("a", "t", 1, 6, 1.0).error == "ILLEGAL_GENERATION"
    result = join(group, "a", partitions=6)
    assert (result.generation, list(result.assigned)) == (2, [0, 1, 2, 3, 4, 5])


def test_a_full_group_takes_no_more() -> None:
    group = TextGroup(CONFIG)
    for member in "abc":
        assert not join(group, member).error
    assert join(group, "d").error == "GROUP_MAX_SIZE_REACHED"
    assert not join(group, "a").error


def test_a_deleted_group_takes_nothing() -> None:
    group = TextGroup(CONFIG)
    join(group, "a")
    assert group.delete(0.0) == "NON_EMPTY_GROUP"
    leave(group, "a", 1)
    assert group.delete(0.0) == ""
    assert join(group, "a").error == "COORDINATOR_NOT_AVAILABLE"
    assert leave(group, "a", 1).error == "COORDINATOR_NOT_AVAILABLE"
    assert group.commit("a", 1, [], 0.0) == "COORDINATOR_NOT_AVAILABLE"
    assert group.delete(0.0) == "COORDINATOR_NOT_AVAILABLE"


def test_administrators_commit_where_there_are_no_members() -> None:
    group = TextGroup(CONFIG)
    assert group.commit("", -1, [("t", 0)], 0.0) == ""
    join(group, "a")
    assert group.commit("", -1, [("t", 0)], 0.0) == "UNKNOWN_MEMBER_ID"


def test_memory_is_counted_and_given_back() -> None:
    group = TextGroup(CONFIG)
    join(group, "a")
    assert group.memory > 0
    leave(group, "a", 1)
    assert group.memory == 0


def test_generations_that_the_store_may_have_lost_are_left_out() -> None:
    group = TextGroup(CONFIG, 7)
    group.bump_generation()
    assert group.changed
    assert join(group, "a").generation > 1000


@given(st.sampled_from(sorted(ASSIGNORS)), st.integers(1, 20), st.integers(0, 50))
def test_every_partition_has_one_member(assignor: str, members: int, partitions: int) -> None:
    shares = ASSIGNORS[assignor](members, partitions)
    assert len(shares) == members
    assert sorted(index for share in shares for index in share) == list(range(partitions))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.tuples(st.sampled_from(["join", "leave", "tick"]), st.sampled_from("abcd")), max_size=30))
def test_generations_rise_with_every_change_and_members_share_all(steps: list[tuple[str, str]]) -> None:
    group, now, before = TextGroup(CONFIG), 0.0, 0
    for step, member in steps:
        now += 4.0
        known = set(group.members)
        if step == "join":
            join(group, member, now)
        elif step == "leave":
            leave(group, member, group.generation)
        else:
            group.tick(now)
        assert group.generation >= before
        assert (set(group.members) == known) or group.generation > before
        before = group.generation
        if group.members:
            assert sorted(index for one in group.members.values() for index in one.assigned) == [0, 1, 2, 3]
        copy = unpack_text(json.loads(json.dumps(pack_text(group))), CONFIG)
        assert pack_text(copy) == pack_text(group)
        copy.resume(now)
        assert (copy.deadline.next() is None) == (not group.members)
