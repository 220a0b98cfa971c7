"""How a generation of the classic protocol forms, on the pure group: who may join, and who is waited for."""

import pytest

from group_model import BOTH, DELAY, RANGE, STICKY, Client, World, gather, make_config, people, rally
from korvet_fast.core.groups.classic.admission import PENDING
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.classic.requests import JoinRequest, SyncRequest
from korvet_fast.core.groups.documents import unpack_group
from packed_group import pack_group


def test_many_who_join_at_once_form_one_generation() -> None:
    world = World()
    clients = people(5)
    for client in clients:
        world.join(client)
        assert client.error == "MEMBER_ID_REQUIRED"
    for client in clients:
        world.join(client)
        world.advance(0.5)
    world.advance(2 * DELAY)
    world.store_all()
    assert {one.generation for one in clients} == {1}
    assert [one.leader for one in clients] == [True, False, False, False, False]


def test_the_first_joining_is_extended_while_newcomers_come_but_not_for_ever() -> None:
    world = World()
    first = Client(0, None, BOTH, rebalance=7.0)
    world.join(first, requires_member_id=False)
    for number in range(1, 5):
        world.advance(2.0)
        world.store_all()
        assert (first.waiter is not None) == (number < 4)
        world.join(Client(number, None, BOTH), requires_member_id=False)
    assert first.generation == 1


def test_without_a_delay_one_member_is_enough() -> None:
    world = World(group=ClassicGroup(make_config(0.0, 5)))
    client = Client(0, None, BOTH)
    world.join(client, requires_member_id=False)
    world.store_all()
    assert (client.generation, client.leader) == (1, True)


def test_a_newcomer_is_given_its_id_first_and_waited_for() -> None:
    one, two = people(2)
    world = gather(one)
    world.join(two)
    assert (two.error, two.waiter, world.group.state) == ("MEMBER_ID_REQUIRED", None, ClassicGroupState.STABLE)
    world.join(one)  # the leader: a rebalance, which the id given out holds up
    assert world.group.state is ClassicGroupState.PREPARING
    world.advance(two.session - 0.1)
    assert one.waiter is not None
    world.advance(0.2)
    world.store_all()
    assert (one.generation, world.group.pending) == (2, {})


def test_an_id_given_out_can_be_given_back() -> None:
    one, two = people(2)
    world = gather(one)
    world.join(two)
    world.join(one)
    assert world.group.leave(two.member_id, None, world.now) == ""
    world.settle()
    world.store_all()
    assert one.generation == 2


def test_no_more_ids_are_given_out_than_can_be_meant() -> None:
    group = ClassicGroup(make_config(DELAY, 1 << 30))
    for number in range(PENDING + 1):
        ask = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10, 10, f"m{number}", True, False)
        group.join(ask, number, 0.0)
    errors = [answer.error for _, answer in group.answers]
    assert errors == ["MEMBER_ID_REQUIRED"] * PENDING + ["GROUP_MAX_SIZE_REACHED"]


def test_members_may_return_to_a_full_group_and_others_not_come() -> None:
    clients = people(5)
    world = gather(*clients)
    sixth = Client(6, None, BOTH)
    world.join(sixth)
    assert (sixth.error, sixth.member_id) == ("GROUP_MAX_SIZE_REACHED", "")
    world.join(clients[0])
    assert clients[0].error == ""


def test_in_a_full_group_too_who_was_replaced_is_told_so() -> None:
    former = Client(0, "alpha", BOTH)
    world = gather(former, *people(5)[1:])
    world.join(Client(9, "alpha", BOTH))
    world.store_all()
    world.join(former)
    assert former.error == "FENCED_INSTANCE_ID"


def test_of_a_group_that_was_made_smaller_the_last_to_come_back_has_to_go() -> None:
    clients = people(3)
    world = gather(*clients)
    world.group = unpack_group(pack_group(world.group, 0), make_config(DELAY, 2))[0]
    world.group.resume(world.now)
    for client in clients:
        world.join(client)
    world.advance(clients[0].rebalance)
    world.store_all()
    assert [one.generation for one in clients] == [2, 2, 1]
    assert clients[2].error == "GROUP_MAX_SIZE_REACHED"


def test_the_protocol_is_one_that_all_have_and_most_prefer() -> None:
    clients = [Client(0, None, BOTH), Client(1, None, STICKY), Client(2, None, STICKY)]
    world = gather(*clients)
    assert world.group.protocol == "sticky"
    stranger = Client(3, None, ("other",))
    world.join(stranger)
    assert stranger.error == "INCONSISTENT_GROUP_PROTOCOL"
    rally(world, *clients, Client(4, None, RANGE))
    assert world.group.protocol == "range"


@pytest.mark.parametrize("kind", ["", "connect"])
def test_the_kind_of_protocol_stays_while_there_are_members(kind: str) -> None:
    (one,) = people(1)
    world = gather(one)
    ask = JoinRequest("", None, "c", "h", kind, (("range", b""),), 10, 10, "fresh", False, False)
    world.group.join(ask, 99, world.now)
    assert [answer.error for _, answer in world.group.answers] == ["INCONSISTENT_GROUP_PROTOCOL"]
    world.group.answers.clear()
    world.leave(one)
    world.store_all()
    world.group.join(ask, 100, world.now)
    assert world.group.answers == [] if kind else world.group.answers


def test_a_follower_may_ask_again_and_the_leader_begins_a_rebalance() -> None:
    leader, follower = people(2)
    world = gather(leader, follower)
    world.join(follower)
    assert (follower.generation, world.group.state) == (1, ClassicGroupState.STABLE)
    world.join(leader)
    assert world.group.state is ClassicGroupState.PREPARING
    assert world.heartbeat(follower) == "REBALANCE_IN_PROGRESS"
    assert world.commit(follower) == ""  # what it has done so far
    world.join(follower)
    world.store_all()
    assert (leader.generation, follower.generation) == (2, 2)
    assert world.group.state is ClassicGroupState.COMPLETING
    assert world.commit(follower) == "REBALANCE_IN_PROGRESS"
    assert world.heartbeat(follower) == ""
    world.join(follower)  # its answer was lost
    assert follower.generation == 2


def test_other_metadata_begins_a_rebalance() -> None:
    leader, follower = people(2)
    world = gather(leader, follower)
    follower.protocols = STICKY
    world.join(follower)
    assert world.group.state is ClassicGroupState.PREPARING


def test_those_who_do_not_come_back_in_time_are_left_behind() -> None:
    leader, follower = people(2)
    leader.session = follower.session = 60.0
    world = gather(leader, follower)
    world.join(leader)
    world.advance(leader.rebalance - 0.1)
    assert leader.waiter is not None
    world.advance(0.2)
    world.store_all()
    assert leader.generation == 2
    assert leader.others == (leader.member_id,)
    assert world.heartbeat(follower) == "UNKNOWN_MEMBER_ID"


def test_if_the_leader_does_not_come_back_another_leads() -> None:
    leader, follower = people(2)
    world = gather(leader, follower)
    world.leave(leader)
    world.join(follower)
    world.store_all()
    assert (follower.generation, follower.leader) == (2, True)


def test_those_who_do_not_sync_in_time_are_left_behind() -> None:
    leader, follower = people(2)
    leader.session = follower.session = 60.0
    world = World()
    for client in (leader, follower):
        world.join(client, requires_member_id=False)
    world.advance(2 * DELAY)
    world.store_all()
    world.sync(follower)
    world.advance(leader.rebalance)
    world.store_all()
    assert follower.error == "REBALANCE_IN_PROGRESS"
    assert world.heartbeat(leader) == "UNKNOWN_MEMBER_ID"


def test_the_time_to_sync_holds_after_a_restart_too() -> None:
    leader, follower = people(2)
    leader.session = follower.session = 60.0
    world = World()
    for client in (leader, follower):
        world.join(client, requires_member_id=False)
    world.advance(2 * DELAY)
    world.store_all()
    world.crash(applied=False)
    world.sync(follower)
    world.advance(leader.rebalance)
    assert follower.error == "REBALANCE_IN_PROGRESS"


def test_members_that_the_leader_forgot_get_nothing() -> None:
    leader, follower = people(2)
    world = World()
    for client in (leader, follower):
        world.join(client, requires_member_id=False)
    world.advance(2 * DELAY)
    world.store_all()
    leader.others = (leader.member_id,)
    world.sync(follower)
    world.sync(leader)
    world.store_all()
    assert follower.synced
    assert follower.owned == frozenset()


@pytest.mark.parametrize(
    ("member_id", "generation", "protocol", "error"),
    [
        ("nobody", 1, "range", "UNKNOWN_MEMBER_ID"),
        ("m1", 0, "range", "ILLEGAL_GENERATION"),
        ("m1", 1, "sticky", "INCONSISTENT_GROUP_PROTOCOL"),
    ],
)
def test_a_sync_must_be_of_the_generation(member_id: str, generation: int, protocol: str, error: str) -> None:
    (client,) = people(1)
    world = World()
    world.join(client, requires_member_id=False)
    world.advance(DELAY)
    world.group.sync(SyncRequest(member_id, None, generation, "consumer", protocol, {}), 99, world.now)
    assert [answer.error for waiter, answer in world.group.answers if waiter == 99] == [error]
