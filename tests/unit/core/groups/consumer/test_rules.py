"""The rules of the consumer protocol, one by one, on the pure group."""

import pytest

from consumer_model import CONFIG, REBALANCE, SESSION, Client, World
from korvet_fast.core.groups.budget import GroupBudget
from korvet_fast.core.groups.config import ConsumerConfig
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.machine import TABLE, ConsumerGroupState, MemberState, ReconcileCase
from korvet_fast.core.groups.consumer.members import LEAVES, PAUSES, HeartbeatRequest, HeartbeatResult, TopicIdPartition
from korvet_fast.core.groups.documents import is_newer, unpack_group
from packed_group import pack_group


def scene(*clients: Client, partitions: int = 4) -> World:
    """A world with a topic `a`, and these in a group that has come to rest."""
    world = World()
    world.shelf.put("a", partitions)
    for client in clients:
        world.come(client)
    world.rest()
    return world


def people(number: int) -> list[Client]:
    return [Client(f"m{each}") for each in range(number)]


def heartbeat(world: World, client: Client) -> None:
    world.heartbeat(client)
    world.store_all()


def say(world: World, ask: HeartbeatRequest) -> HeartbeatResult:
    """Answers to heartbeats that no client of the model would send."""
    world.group.heartbeat(ask, None, world.shelf, world.now)
    (_, answer) = world.group.answers.pop()
    world.settle()
    world.store_all()
    return answer


def test_the_table_says_what_happens_in_each_state() -> None:
    moves = {ReconcileCase.EXCESS, ReconcileCase.WAITS, ReconcileCase.WHOLE}
    expected = {
        MemberState.STABLE: moves | {ReconcileCase.SETTLED},
        MemberState.UNREVOKED: moves | {ReconcileCase.HOLDS},
        MemberState.UNRELEASED: moves,
    }
    for state, cases in expected.items():
        assert {case for where, case in TABLE if where is state} == cases


def test_a_partition_goes_on_only_when_its_owner_has_given_it_up() -> None:
    first, second = people(2)
    world = scene(first)
    every = set(first.reads)
    epoch = first.epoch
    world.come(second)
    world.store_all()
    assert (second.reads, second.epoch, world.group.state) == (set(), epoch + 1, ConsumerGroupState.RECONCILING)
    heartbeat(world, first)
    assert (len(first.goal), first.epoch) == (2, epoch), "told what to keep, in its old epoch"
    for one in (first, second, first, second):  # nothing happens while it still reads
        heartbeat(world, one)
    assert (first.reads, second.reads) == (every, set())
    world.obey(first)
    heartbeat(world, first)
    assert first.epoch == epoch + 1
    heartbeat(world, second)
    assert second.reads == every - first.reads
    assert world.group.state is ConsumerGroupState.STABLE


def test_nobody_else_moves_when_a_third_member_comes() -> None:
    first, second, third = people(3)
    world = scene(first, second, partitions=6)
    before = [set(one.reads) for one in (first, second)]
    world.come(third)
    world.rest()
    assert [one.reads < had for one, had in zip((first, second), before, strict=True)] == [True, True]
    assert [len(one.reads) for one in (first, second, third)] == [2, 2, 2]


def test_who_does_not_give_up_in_time_is_gone() -> None:
    first, second = people(2)
    world = scene(first)
    world.come(second)
    heartbeat(world, first)
    for _ in range(int(REBALANCE)):
        assert first.error == ""
        world.advance(1.0)
        world.settle()
        heartbeat(world, first)
        heartbeat(world, second)
    assert first.error == "UNKNOWN_MEMBER_ID"
    heartbeat(world, second)
    assert len(second.reads) == 4


def test_who_is_silent_for_too_long_is_gone() -> None:
    first, second = people(2)
    world = scene(first, second)
    epoch = world.group.epoch
    for one in (first, second):
        heartbeat(world, one)
    first.alive = False
    world.advance(SESSION - 0.1)
    heartbeat(world, second)
    assert world.group.epoch == epoch
    world.advance(0.2)
    assert (world.group.epoch, world.group.state) == (epoch + 1, ConsumerGroupState.ASSIGNING)
    heartbeat(world, second)
    assert (len(second.reads), world.group.state) == (4, ConsumerGroupState.STABLE)


def test_who_leaves_is_gone_at_once() -> None:
    first, second = people(2)
    world = scene(first, second)
    assert say(world, HeartbeatRequest("m0", LEAVES)) == HeartbeatResult("", "m0", LEAVES)
    first.alive = False
    heartbeat(world, second)
    assert len(second.reads) == 4
    assert say(world, HeartbeatRequest("m0", 1)).error == "UNKNOWN_MEMBER_ID"
    assert say(world, HeartbeatRequest("m0", LEAVES)).error == "UNKNOWN_MEMBER_ID"


def test_other_epochs_than_its_own_are_fenced() -> None:
    (client,) = people(1)
    world = scene(client)
    owned = frozenset(client.reads)
    for epoch in (client.epoch + 1, client.epoch + 100):
        assert say(world, HeartbeatRequest("m0", epoch, owned=owned)).error == "FENCED_MEMBER_EPOCH"
    world.shelf.put("a", 6)
    heartbeat(world, client)
    world.shelf.put("a", 7)
    heartbeat(world, client)
    assert say(world, HeartbeatRequest("m0", client.epoch - 2, owned=owned)).error == "FENCED_MEMBER_EPOCH"


def test_the_epoch_before_counts_while_the_answer_may_be_lost() -> None:
    (client,) = people(1)
    world = scene(client)
    before, owned = client.epoch, frozenset(client.reads)
    world.shelf.put("a", 6)
    world.heartbeat(client)
    world.lose_answer(client)
    world.store_all()
    assert say(world, HeartbeatRequest("m0", before)).error == "FENCED_MEMBER_EPOCH", "it does not say what it has"
    foreign = owned | {TopicIdPartition(b"other", 0)}
    assert say(world, HeartbeatRequest("m0", before, owned=foreign)).error == "FENCED_MEMBER_EPOCH", (
        "it has what it was never given"
    )
    heartbeat(world, client)
    assert (client.error, client.epoch, len(client.reads)) == ("", before + 1, 6)


def test_who_has_more_than_it_was_given_is_fenced() -> None:
    first, second = people(2)
    world = scene(first, second)
    assert say(world, HeartbeatRequest("m0", first.epoch, owned=frozenset(second.reads))).error == "FENCED_MEMBER_EPOCH"


def test_who_was_fenced_joins_again_under_its_id_and_has_its_partitions_back() -> None:
    first, second = people(2)
    world = scene(first, second)
    epoch, had = world.group.epoch, set(first.reads)
    first.drop()
    heartbeat(world, first)
    assert (first.reads, first.epoch, world.group.epoch) == (had, epoch, epoch)


def test_only_news_are_answered_with_an_assignment() -> None:
    (client,) = people(1)
    world = scene(client)
    epoch, owned = client.epoch, frozenset(client.reads)
    assert say(world, HeartbeatRequest("m0", epoch)) == HeartbeatResult("", "m0", epoch, None)
    whole = HeartbeatRequest("m0", epoch, rebalance_timeout=REBALANCE, names=("a",), regex="", owned=owned)
    assert say(world, whole) == HeartbeatResult("", "m0", epoch, owned)


def test_nothing_is_stored_for_a_heartbeat_without_news() -> None:
    (client,) = people(1)
    world = scene(client)
    world.heartbeat(client)
    assert world.writes == []


def test_a_static_member_comes_back_to_its_partitions_under_another_id() -> None:
    static, other = Client("s1", instance_id="s"), Client("m1")
    world = scene(static, other)
    epoch, had = world.group.epoch, set(static.reads)
    second = Client("s2", instance_id="s")
    heartbeat(world, world.come(second))
    assert second.error == "UNRELEASED_INSTANCE_ID"
    world.leave(static, PAUSES)
    world.store_all()
    assert (world.group.epoch, world.group.state) == (epoch, ConsumerGroupState.RECONCILING)
    assert say(world, HeartbeatRequest("s1", epoch, "s")).error == "FENCED_MEMBER_EPOCH", "it said that it was away"
    heartbeat(world, second)
    assert (second.reads, second.epoch, world.group.epoch) == (had, epoch, epoch)
    assert say(world, HeartbeatRequest("s1", epoch, "s")).error == "FENCED_INSTANCE_ID"
    assert say(world, HeartbeatRequest("s1", LEAVES, "s")).error == "FENCED_INSTANCE_ID"
    assert say(world, HeartbeatRequest("x", 3, "x")).error == "UNKNOWN_MEMBER_ID"


def test_who_takes_the_place_of_a_static_member_leaves_its_own() -> None:
    static, other, third = Client("s1", instance_id="s"), Client("m1"), Client("m2")
    world = scene(static, other)
    world.leave(static, PAUSES)
    world.store_all()
    join = HeartbeatRequest("m1", 0, "s", rebalance_timeout=REBALANCE, names=("a",), owned=frozenset())
    told = say(world, join)
    assert (told.error, [one.id for one in world.group.members]) == ("", ["m1"])
    assert told.assigned is not None
    assert len(told.assigned) == 4, "what it had under its own name was nobody's"
    assert say(world, HeartbeatRequest("m1", LEAVES, "s")).error == ""
    for client in (static, other):
        client.drop()
        client.alive = False
    heartbeat(world, world.come(third))
    assert len(third.reads) == 4


def test_a_static_member_that_does_not_come_back_is_gone_after_its_session() -> None:
    static, other = Client("s1", instance_id="s"), Client("m1")
    world = scene(static, other)
    heartbeat(world, other)
    world.leave(static, PAUSES)
    world.advance(SESSION - 0.1)
    heartbeat(world, other)
    assert len(other.reads) == 2
    world.advance(0.2)
    heartbeat(world, other)
    assert len(other.reads) == 4


def test_a_static_member_that_was_asked_to_give_up_goes_and_so_has_given_up() -> None:
    static, other = Client("s1", instance_id="s"), Client("m1")
    world = scene(static)
    world.come(other)
    heartbeat(world, static)
    world.leave(static, PAUSES)
    world.store_all()
    heartbeat(world, other)
    assert len(other.reads) == 2


def test_a_member_may_become_a_static_one_when_it_joins_again() -> None:
    world = scene(Client("m0"))
    join = HeartbeatRequest("m0", 0, "s", rebalance_timeout=REBALANCE, names=("a",), owned=frozenset())
    assert say(world, join).error == ""
    member = world.group.members.of_instance("s")
    assert member is not None
    assert say(world, HeartbeatRequest("m0", member.epoch, "s")).error == ""
    assert say(world, join._replace(instance_id="t")).error == ""
    assert world.group.members.of_instance("s") is None


def test_an_administrator_removes_static_members_only() -> None:
    world = scene(Client("s1", instance_id="s"), Client("m1"))
    assert world.group.remove("m1", None) == "UNKNOWN_MEMBER_ID"
    assert world.group.remove("other", "s") == "FENCED_INSTANCE_ID"
    assert world.group.remove("", "s") == ""
    assert [one.id for one in world.group.members] == ["m1"]


def test_a_full_group_takes_nobody_but_a_static_member_that_comes_back() -> None:
    static, *others = Client("s1", instance_id="s"), *people(4)
    world = scene(static, *others)
    assert world.come(Client("late")).error == "GROUP_MAX_SIZE_REACHED"
    world.leave(static, PAUSES)
    back = world.come(Client("s2", instance_id="s"))
    world.store_all()
    assert back.error == ""


def test_topics_that_come_grow_and_go_change_the_assignment() -> None:
    client = Client("m0", names=("a", "b"))
    world = scene(client)
    epoch = client.epoch
    for change, count in ((lambda: world.shelf.put("b", 2), 6), (lambda: world.shelf.put("a", 5), 7)):
        change()
        heartbeat(world, client)
        epoch += 1
        assert (client.epoch, len(client.reads)) == (epoch, count)
    world.shelf.put("other", 3)
    heartbeat(world, client)
    assert client.epoch == epoch, "nobody reads that one"
    world.shelf.delete("a")
    world.rest()
    assert {partition.topic_id for partition in client.reads} == {world.shelf.topics["b"].id}
    world.shelf.put("a", 5)
    world.rest()
    assert len(client.reads) == 7


def test_a_pattern_is_for_topics_that_come_later_too() -> None:
    client = Client("m0", names=(), regex="b*")
    world = scene(client)
    assert client.reads == set()
    world.shelf.put("b1", 2)
    world.shelf.put("b2", 1)
    heartbeat(world, client)
    assert len(client.reads) == 3
    world.subscribe(client, (), "")
    world.rest()
    assert client.reads == set()


def test_the_assignor_is_what_most_ask_for_and_else_the_first() -> None:
    world = scene(Client("m0"), Client("m1", assignor="range"))
    assert world.group.assignor == "range"
    world.come(Client("m2", assignor="uniform"))
    world.come(Client("m3", assignor="uniform"))
    assert world.group.assignor == "uniform"
    assert ConsumerGroup(ConsumerConfig(GroupBudget(), assignors=("range",))).assignor == "range"


def test_commits_are_taken_of_members_in_their_epoch() -> None:
    first, second = people(2)
    world = scene(first)
    group = world.group
    assert group.commit("m0", first.epoch, knows=True) == ""
    assert group.commit("m0", first.epoch, knows=False) == "UNSUPPORTED_VERSION"
    assert group.commit("m0", first.epoch + 1, knows=True) == "STALE_MEMBER_EPOCH"
    assert group.commit("stranger", 1, knows=True) == "UNKNOWN_MEMBER_ID"
    assert group.commit("", -1, knows=True) == "UNKNOWN_MEMBER_ID", "somebody is there"
    assert group.fetch(None, -1) == ""
    assert group.fetch("m0", first.epoch) == ""
    assert group.fetch("m0", 0) == "STALE_MEMBER_EPOCH"
    assert group.fetch("stranger", 1) == "UNKNOWN_MEMBER_ID"
    world.leave(first, LEAVES)
    assert group.commit("", -1, knows=False) == ""
    assert world.commit(second) == "UNKNOWN_MEMBER_ID"


def test_a_commit_of_an_earlier_epoch_is_taken_for_what_the_member_has_had_since() -> None:
    """A consumer that closes commits while the answer to its last heartbeat is still on its way (KIP-1251)."""
    first, second = people(2)
    world = scene(first, second)
    group, before = world.group, first.epoch
    mine, others = min(first.reads).partition, min(second.reads).partition
    world.leave(second, LEAVES)
    heartbeat(world, first)
    member = group.members.get("m0")
    assert member is not None
    assert (member.epoch, len(member.assigned)) == (before + 1, 4)
    assert group.commit("m0", before, [("a", mine)], knows=True) == ""
    stale = [[("a", others)], [("a", mine), ("a", others)], [("b", 0)], []]
    assert {group.commit("m0", before, places, knows=True) for places in stale} == {"STALE_MEMBER_EPOCH"}
    assert group.commit("m0", 0, [("a", mine)], knows=True) == "STALE_MEMBER_EPOCH"
    assert group.commit("m0", before + 2, [("a", mine)], knows=True) == "STALE_MEMBER_EPOCH"
    world.crash(applied=True)
    assert world.group.commit("m0", before, [("a", mine)], knows=True) == "STALE_MEMBER_EPOCH", "known no more"
    assert world.group.commit("m0", before + 1, [("a", others)], knows=True) == ""


def test_a_group_is_deleted_when_nobody_is_in_it() -> None:
    (client,) = people(1)
    world = scene(client)
    assert world.group.delete(world.now) == "NON_EMPTY_GROUP"
    world.leave(client, LEAVES)
    world.store_all()
    assert (world.group.delete(world.now), world.group.state) == ("", ConsumerGroupState.DEAD)
    gone = "COORDINATOR_NOT_AVAILABLE"
    assert world.group.delete(world.now) == world.group.remove("m0", "s") == world.group.commit("", -1, knows=True)
    assert world.group.commit("", -1, knows=True) == gone
    world.group.heartbeat(HeartbeatRequest("m0", 0), None, world.shelf, world.now)
    assert world.group.answers == [(None, HeartbeatResult(gone))]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_what_is_stored_is_all_there_is_to_know(assignor: str) -> None:
    clients = [Client("m0", assignor=assignor), Client("s1", instance_id="s"), Client("m2", names=(), regex="*")]
    world = scene(*clients)
    world.come(Client("m3"))
    heartbeat(world, clients[0])
    document = pack_group(world.group, 17)
    group, since = unpack_group(document, CONFIG)
    assert (pack_group(group, since), since) == (document, 17)
    group.resume(world.now)
    assert group.deadline.next() == world.now + SESSION
    key = "groups-1/group/g"
    assert not is_newer(key, document, document)
    world.come(Client("m4"))
    assert is_newer(key, pack_group(world.group, 17), document)
