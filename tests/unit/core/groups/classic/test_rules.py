"""The rules for the members of a classic group, on the pure group: sessions, leaving, commits, deletion, documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from group_model import DELAY, STICKY, Client, gather, make_config, people
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.machine import TABLE, Act, ClassicGroupState, Event
from korvet_fast.core.groups.classic.members import ClassicMember, ClassicMembers
from korvet_fast.core.groups.classic.requests import JoinRequest, SyncRequest
from korvet_fast.core.groups.diagram import draw
from korvet_fast.core.groups.documents import unpack_group
from packed_group import pack_group


def test_the_diagram_in_the_docs_is_that_of_the_table() -> None:
    page = Path(__file__).parents[5] / "docs" / "groups.md"
    assert page.read_text().splitlines() == list(draw()), "make diagrams"


def test_every_request_has_an_answer_in_every_state() -> None:
    requests = set(Event) - {Event.LOST, Event.FORMED, Event.EMPTIED}
    outside = {Event.JOIN_NEW, Event.COMMIT_OUTSIDE, Event.DELETED}
    for state in ClassicGroupState:
        expected = outside if state is ClassicGroupState.EMPTY else requests
        assert expected <= {event for where, event in TABLE if where is state}


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
    assert (group.state, group.generation, group.protocol_type, group.protocol) == (
        ClassicGroupState.EMPTY,
        2,
        "consumer",
        None,
    )


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
    group = ClassicGroup(make_config(DELAY, 5))
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
    group, since = unpack_group(pack_group(world.group, 1234), make_config(DELAY, 5))
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
    group = ClassicGroup(make_config(DELAY, 1000))
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
