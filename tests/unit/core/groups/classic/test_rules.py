"""The rules of the classic protocol, one by one, on the pure group."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from group_model import BOTH, DELAY, RANGE, STICKY, Client, World, gather, people, rally
from korvet_fast.core.groups.classic.admission import PENDING
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.machine import TABLE, Act, Event, State
from korvet_fast.core.groups.classic.members import ClassicMember, ClassicMembers
from korvet_fast.core.groups.classic.requests import JoinRequest, SyncRequest
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.diagram import draw
from korvet_fast.core.groups.documents import pack_group, unpack_group


def test_the_diagram_in_the_docs_is_that_of_the_table() -> None:
    page = Path(__file__).parents[5] / "docs" / "groups.md"
    assert page.read_text().splitlines() == list(draw()), "make diagrams"


def test_every_request_has_an_answer_in_every_state() -> None:
    requests = set(Event) - {Event.LOST, Event.FORMED, Event.EMPTIED}
    outside = {Event.JOIN_NEW, Event.COMMIT_OUTSIDE, Event.DELETED}
    for state in State:
        expected = outside if state is State.EMPTY else requests
        assert expected <= {event for where, event in TABLE if where is state}


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
    world = World(group=ClassicGroup(GroupConfig(0.0, 5)))
    client = Client(0, None, BOTH)
    world.join(client, requires_member_id=False)
    world.store_all()
    assert (client.generation, client.leader) == (1, True)


def test_a_newcomer_is_given_its_id_first_and_waited_for() -> None:
    one, two = people(2)
    world = gather(one)
    world.join(two)
    assert (two.error, two.waiter, world.group.state) == ("MEMBER_ID_REQUIRED", None, State.STABLE)
    world.join(one)  # the leader: a rebalance, which the id given out holds up
    assert world.group.state is State.PREPARING
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
    group = ClassicGroup(GroupConfig(DELAY, 1 << 30))
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
    world.group = unpack_group(pack_group(world.group, 0), GroupConfig(DELAY, 2))[0]
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
    assert (follower.generation, world.group.state) == (1, State.STABLE)
    world.join(leader)
    assert world.group.state is State.PREPARING
    assert world.heartbeat(follower) == "REBALANCE_IN_PROGRESS"
    assert world.commit(follower) == ""  # what it has done so far
    world.join(follower)
    world.store_all()
    assert (leader.generation, follower.generation) == (2, 2)
    assert world.group.state is State.COMPLETING
    assert world.commit(follower) == "REBALANCE_IN_PROGRESS"
    assert world.heartbeat(follower) == ""
    world.join(follower)  # its answer was lost
    assert follower.generation == 2


def test_other_metadata_begins_a_rebalance() -> None:
    leader, follower = people(2)
    world = gather(leader, follower)
    follower.protocols = STICKY
    world.join(follower)
    assert world.group.state is State.PREPARING


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


def test_a_session_ends_once_and_not_before_its_time() -> None:
    leader, follower = people(2)
    world = gather(leader, follower)
    world.advance(follower.session - 1.0)
    assert world.heartbeat(leader) == ""
    world.advance(0.9)
    assert len(world.group.members) == 2
    world.advance(0.2)
    assert [one.id for one in world.group.members] == [leader.member_id]
    world.join(leader)
    world.store_all()
    assert leader.generation == 2
    world.sync(leader)
    world.advance(leader.session - 0.1)
    assert world.group.generation == 2


def test_whoever_waits_does_not_expire() -> None:
    leader, follower = people(2)
    follower.session = follower.rebalance = 60.0
    world = gather(leader, follower)
    leader.rebalance = 60.0
    world.join(leader)
    world.advance(40.0)
    assert leader.waiter is not None
    assert leader.member_id in world.group.members


def test_leaving_with_the_wrong_names() -> None:
    (static,) = people(1, static=True)
    world = gather(static)
    leave, now = world.group.leave, world.now
    assert leave("other", static.instance_id, now) == "FENCED_INSTANCE_ID"
    assert leave("other", None, now) == "UNKNOWN_MEMBER_ID"
    assert leave("", "other", now) == "UNKNOWN_MEMBER_ID"
    assert leave(static.member_id, static.instance_id, now) == ""


def test_the_last_to_leave_leaves_an_empty_generation() -> None:
    (one,) = people(1)
    world = gather(one)
    world.leave(one)
    group = world.group
    assert (group.state, group.generation, group.protocol_type, group.protocol) == (State.EMPTY, 2, "consumer", None)


def test_a_closed_connection_takes_a_newcomer_without_id_with_it() -> None:
    one, two, three = people(3)
    world = gather(one)
    world.join(two, requires_member_id=False)
    world.kill(two)
    assert len(world.group.members) == 1
    world.join(three)
    world.join(three)
    world.kill(three)
    assert len(world.group.members) == 2  # it knows its id, and may come back on another connection


def test_who_asks_twice_has_both_requests_answered() -> None:
    one, two = people(2)
    world = gather(one, two)
    world.join(one)
    first = one.waiter
    world.join(one)
    assert first is not None
    assert world.asked[first].answered
    world.join(two)
    world.store_all()
    world.sync(two)
    first = two.waiter
    world.sync(two)
    assert first is not None
    assert world.asked[first].answered


def test_commits_from_outside_only_where_nobody_is() -> None:
    group = ClassicGroup(GroupConfig(DELAY, 5))
    assert group.commit("", None, -1, 0.0) == ""
    assert group.commit("admin", None, -1, 0.0) == ""
    assert group.commit("nobody", None, 3, 0.0) == "UNKNOWN_MEMBER_ID"
    (one,) = people(1)
    world = gather(one)
    assert world.group.commit("", None, -1, world.now) == "UNKNOWN_MEMBER_ID"
    assert world.group.commit(one.member_id, None, 0, world.now) == "ILLEGAL_GENERATION"
    assert world.group.commit(one.member_id, None, -1, world.now) == "ILLEGAL_GENERATION"
    assert world.group.commit(one.member_id, None, 1, world.now) == ""


def test_what_is_being_deleted_takes_nothing() -> None:
    (one,) = people(1)
    world = gather(one)
    assert world.group.delete(world.now) == "NON_EMPTY_GROUP"
    world.leave(one)
    world.store_all()
    group = world.group
    assert group.delete(world.now) == ""
    gone = Act.GONE.value
    group.join(
        JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10, 10, "new", False, False), 1, world.now
    )
    group.sync(SyncRequest("m1", None, 1, None, None, {}), 2, world.now)
    assert [answer.error for _, answer in group.answers] == [gone, gone]
    assert group.heartbeat("m1", None, 1, world.now) == gone
    assert group.leave("m1", None, world.now) == gone
    assert group.commit("m1", None, 1, world.now) == gone
    assert group.commit("", None, -1, world.now) == gone
    assert group.delete(world.now) == gone


def test_a_document_holds_all_that_survives() -> None:
    clients = [*people(2, static=True), Client(7, None, STICKY)]
    world = gather(*clients)
    group, since = unpack_group(pack_group(world.group, 1234), GroupConfig(DELAY, 5))
    assert since == 1234
    names = ("state", "generation", "protocol_type", "protocol", "leader")
    assert [getattr(group, name) for name in names] == [getattr(world.group, name) for name in names]
    kept = (
        "id",
        "instance_id",
        "client_id",
        "client_host",
        "session_timeout",
        "rebalance_timeout",
        "protocols",
        "assignment",
    )
    assert [[getattr(one, name) for name in kept] for one in group.members] == [
        [getattr(one, name) for name in kept] for one in world.group.members
    ]
    assert group.members.of_instance("static-1") is group.members.get(clients[1].member_id)


def test_giving_up_very_many_who_wait_looks_at_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 joins of one group, whose connections went together, held the broker for 3.6 s."""
    group = ClassicGroup(GroupConfig(DELAY, 1000))
    waiters = [object() for _ in range(300)]
    for number, waiter in enumerate(waiters):
        fresh = f"member {number}"
        group.join(
            JoinRequest("", None, "c", "/h", "consumer", (("range", b""),), 10.0, 10.0, fresh, False, False), waiter, 0
        )
    look, looks = ClassicMembers.__iter__, []

    def count(members: ClassicMembers) -> Iterator[ClassicMember]:
        looks.append(members)
        return look(members)

    monkeypatch.setattr(ClassicMembers, "__iter__", count)
    for waiter in waiters:
        group.withdraw(waiter, 1.0)
    assert not group.members
    assert len(group.answers) == 300
    assert len(looks) <= 1  # all of them together, where nobody is left
    group.withdraw(waiters[0], 2.0)  # nobody waits there any more
    assert len(group.answers) == 300
