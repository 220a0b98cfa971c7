"""Static members of the classic protocol (KIP-345): a restart that nobody notices, and who is fenced."""

import pytest

from group_model import BOTH, STICKY, Client, gather, people
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from packed_group import pack_group


def test_a_static_member_that_restarts_is_not_noticed() -> None:
    first, second = people(2, static=True)
    world = gather(first, second)
    document = pack_group(world.group, 0)
    again = Client(9, first.instance_id, first.protocols)
    world.join(again)
    assert again.waiter is not None
    assert world.document == document, "told before it was stored"
    world.store_all()
    assert (again.generation, again.leader, world.group.generation) == (1, False, 1)
    assert again.others != ()  # it leads, and is told to assign nothing
    world.sync(again)
    assert again.owned == first.owned
    assert world.heartbeat(first) == "FENCED_INSTANCE_ID"
    assert world.heartbeat(second) == ""


def test_a_static_leader_that_cannot_skip_is_told_that_another_leads() -> None:
    first, second = people(2, static=True)
    world = gather(first, second)
    former = first.member_id
    again = Client(9, first.instance_id, first.protocols)
    world.join(again, supports_skipping_assignment=False)
    (answers,) = [answers for _, answers in world.writes]
    ((_, answer),) = answers
    assert (answer.error, answer.leader, answer.members, answer.skip_assignment) == ("", former, (), False)  # type: ignore[union-attr]


def test_a_tie_between_protocols_is_not_decided_anew_by_a_restart() -> None:
    clients = [Client(0, "a", BOTH), Client(1, "b", STICKY)]
    world = gather(*clients)
    assert world.group.protocol == "range"
    world.join(Client(9, "a", BOTH))
    assert world.group.state is ClassicGroupState.STABLE


def test_a_static_member_that_changes_the_choice_begins_a_rebalance() -> None:
    first, second = people(2, static=True)
    world = gather(first, second)
    world.join(Client(9, first.instance_id, ("sticky",)))
    assert world.group.state is ClassicGroupState.PREPARING


@pytest.mark.parametrize("phase", ["join", "sync"])
def test_whoever_waits_under_an_old_static_id_is_fenced(phase: str) -> None:
    first, second = people(2, static=True)
    world = gather(first, second)
    world.join(first)
    waiting = first
    if phase == "sync":
        world.join(second)
        world.store_all()
        world.sync(second)
        waiting = second
    again = Client(9, waiting.instance_id, waiting.protocols)
    world.join(again)
    world.store_all()
    assert waiting.error == "FENCED_INSTANCE_ID"
    assert again.waiter is not None


def test_a_static_member_keeps_its_place_until_its_session_ends_or_it_is_removed() -> None:
    first, second = people(2, static=True)
    first.session = second.session = 60.0
    world = gather(first, second)
    world.join(first)
    world.advance(first.rebalance)
    world.store_all()
    assert first.others == (first.member_id, second.member_id)
    assert world.group.leave("", second.instance_id, world.now) == ""
    assert world.group.leave("", second.instance_id, world.now) == "UNKNOWN_MEMBER_ID"
    assert [one.id for one in world.group.members] == [first.member_id]


def test_only_absent_static_members_keep_a_group_waiting() -> None:
    first, second = people(2, static=True)
    first.session = second.session = 60.0
    world = gather(first, second)
    third = Client(3, None, BOTH)
    world.join(third, requires_member_id=False)
    world.kill(third)
    world.advance(first.rebalance + 1)
    assert world.group.state is ClassicGroupState.PREPARING
    world.advance(60.0)
    assert (world.group.state, world.group.generation) == (ClassicGroupState.EMPTY, 2)


def test_an_id_given_out_is_not_taken_from_a_static_member() -> None:
    static, *_ = people(1, static=True)
    newcomer = Client(3, None, BOTH)
    world = gather(static)
    world.join(newcomer)
    assert newcomer.error == "MEMBER_ID_REQUIRED"
    for instance, error in ((static.instance_id, "FENCED_INSTANCE_ID"), ("other", "UNKNOWN_MEMBER_ID")):
        again = Client(4, instance, BOTH, member_id=newcomer.member_id)
        world.join(again)
        assert again.error == error
    assert [one.id for one in world.group.members] == [static.member_id]
    world.kill(static)
    world.advance(60.0)  # with two members of one instance, the second could never be removed
    assert (world.group.state, len(world.group.members)) == (ClassicGroupState.EMPTY, 0)
