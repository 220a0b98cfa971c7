"""Whatever members, the network, the store, the topics and the clock do to a consumer group: the invariants hold."""

import hypothesis.strategies as st
from hypothesis import event, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from consumer_model import REBALANCE, SESSION, Client, World
from korvet_fast.core.groups.consumer.machine import ConsumerGroupState
from korvet_fast.core.groups.consumer.members import LEAVES, PAUSES
from twin.profile import examples

SUBSCRIPTIONS = ((("a",), ""), (("a", "b"), ""), (("b",), ""), ((), "*"), (("a",), "b*"), ((), ""))
NAMES = ("a", "b", "bb")


class ConsumerGroups(RuleBasedStateMachine):
    """Members come, read, hesitate, leave, die; answers are lost; topics change; coordinators crash and forget."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.ids = 0

    @initialize()
    def begin(self) -> None:
        self.world.shelf.put("a", 4)
        self.world.shelf.put("b", 2)
        self.come(None, SUBSCRIPTIONS[0], None)

    def pick(self, data: st.DataObject, *, idle: bool = False) -> Client | None:
        clients = [one for one in self.world.living() if not (idle and one.waits)]
        return data.draw(st.sampled_from(clients)) if clients else None

    @rule(
        instance_id=st.sampled_from((None, None, None, "x", "y")),
        wants=st.sampled_from(SUBSCRIPTIONS),
        assignor=st.sampled_from((None, None, "uniform", "range")),
    )
    def come(self, instance_id: str | None, wants: tuple[tuple[str, ...], str], assignor: str | None) -> None:
        if len(self.world.living()) < 6:
            self.ids += 1
            self.world.come(Client(f"m{self.ids}", *wants, instance_id, assignor))

    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        if (client := self.pick(data, idle=True)) is not None:
            self.world.heartbeat(client)

    @rule(times=st.integers(1, 3))
    def everybody_sends_heartbeats(self, times: int) -> None:
        """Everybody heartbeats, and hears of it, but stops reading nothing yet."""
        for _ in range(times):
            for client in self.world.living():
                if not client.waits:
                    self.world.heartbeat(client)
            self.world.store_all()

    @rule(data=st.data())
    def obey(self, data: st.DataObject) -> None:
        if (client := self.pick(data)) is not None:
            self.world.obey(client)

    @rule(data=st.data())
    def lose_answer(self, data: st.DataObject) -> None:
        if (client := self.pick(data)) is not None and client.waits:
            self.world.lose_answer(client)

    @rule(data=st.data(), wants=st.sampled_from(SUBSCRIPTIONS))
    def want_else(self, data: st.DataObject, wants: tuple[tuple[str, ...], str]) -> None:
        if (client := self.pick(data)) is not None:
            self.world.subscribe(client, *wants)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """Nobody commits with an epoch that is not the member's (G4)."""
        if (client := self.pick(data)) is not None:
            error = self.world.commit(client)
            member = self.world.group.members.get(client.member_id)
            if error == "":
                assert member is not None
                assert member.epoch == client.epoch
            elif member is None:
                assert error == "UNKNOWN_MEMBER_ID"
            else:
                assert error == "STALE_MEMBER_EPOCH"

    @rule(data=st.data())
    def commit_reads(self, data: st.DataObject) -> None:
        """Where a client knows its epoch, each commit of what it reads is taken; where it does not, some are."""
        if (client := self.pick(data)) is not None:
            errors = self.world.commit_reads(client)
            member = self.world.member(client)
            if member is not None and member.epoch == client.epoch and not member.away:
                assert set(errors) <= {""}

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if (client := self.pick(data)) is not None:
            self.world.leave(client, LEAVES)

    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        if (client := self.pick(data)) is not None:
            client.alive = False

    @rule(data=st.data())
    def restart_static(self, data: st.DataObject) -> None:
        """A static member goes, comes back under another id, and nobody else notices (G6)."""
        clients = [one for one in self.world.living() if one.instance_id and self.world.member(one) and not one.waits]
        if not clients:
            return
        world, before = self.world, data.draw(st.sampled_from(clients))
        world.store_all()
        member = world.member(before)
        if member is None or member.away:
            return
        epoch, quiet = world.group.epoch, world.group.state is ConsumerGroupState.STABLE and world.current()
        subscription, assigned = member.subscription, member.assigned
        world.leave(before, PAUSES)
        self.ids += 1
        back = world.come(Client(f"m{self.ids}", *subscription, before.instance_id))
        world.store_all()
        assert back.error == ""
        if quiet:
            assert world.group.epoch == epoch
            assert back.reads == assigned
            event("static member restarted")

    @rule(name=st.sampled_from(NAMES), partitions=st.integers(1, 7))
    def change_topic(self, name: str, partitions: int) -> None:
        known = self.world.shelf.get(name)
        if known is None or known.partitions < partitions:
            self.world.shelf.put(name, partitions)

    @rule(name=st.sampled_from(NAMES))
    def delete_topic(self, name: str) -> None:
        if self.world.shelf.get(name) is not None:
            self.world.shelf.delete(name)

    @rule()
    def store(self) -> None:
        if self.world.writes:
            self.world.store_one()

    @rule(applied=st.booleans())
    def crash(self, applied: bool) -> None:
        self.world.crash(applied=applied)

    @rule()
    def crash_in_peace(self) -> None:
        """All is stored, everybody heartbeats in time: nobody notices that the coordinator is another one (G7)."""
        world = self.world
        world.store_all()
        if world.group.state is not ConsumerGroupState.STABLE or not world.current():
            return
        epoch, progress = world.group.epoch, {one.id: one.progress for one in world.group.members}
        world.crash(applied=False)
        for client in world.living():
            if client.member_id in progress and client.epoch > 0 and not client.uncertain:
                world.heartbeat(client)
                world.store_all()
                assert client.error == ""
        assert (world.group.epoch, {one.id: one.progress for one in world.group.members}) == (epoch, progress)
        event("coordinator replaced")

    @rule(data=st.data())
    def change_history(self, data: st.DataObject) -> None:
        """The storage forgets its last changes, and with it the coordinator: whoever is ahead has to begin anew."""
        world = self.world
        world.store_all()
        old, forgot = world.load(), world.document
        self.pass_time(data.draw(st.floats(0.0, SESSION)))
        self.everybody_sends_heartbeats(1)
        if forgot is None:
            return
        ahead, lost = {one.member_id: one.epoch for one in world.living()}, world.group.epoch
        world.document, world.kept = forgot, old.epoch
        world.targets = {epoch: target for epoch, target in world.targets.items() if epoch <= old.target_epoch}
        world.unsettled = {one.id for one in world.group.members} | {one.id for one in old.members}
        world.unsettled |= {one.member_id for one in world.living()}
        world.crash(applied=False)
        world.group.bump_epoch()
        world.settle()
        world.store_all()
        assert world.group.epoch > lost
        for client in world.living():
            client.uncertain = True  # its connection is gone
            world.heartbeat(client)
            world.store_all()
            known = old.members.get(client.member_id)
            if known is not None and ahead[client.member_id] > known.epoch:
                assert client.epoch == 0, "it kept what only the lost history gave it"
                event("fenced after a fork")
        world.advance(SESSION + REBALANCE)
        world.unsettled.clear()
        world.check()

    @rule(seconds=st.floats(0.1, SESSION / 2))
    def pass_time(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(seconds=st.floats(1.0, 100.0))
    def stand_still(self, seconds: float) -> None:
        """The program stood still, and its clients could not help it: nobody expires for that (G9)."""
        members = {one.id for one in self.world.group.members}
        self.world.now += seconds
        self.world.group.extend_deadlines(seconds)
        self.world.group.tick(self.world.now)
        assert members == {one.id for one in self.world.group.members}
        self.world.settle()

    @rule()
    def come_to_rest(self) -> None:
        """Left alone, everybody doing their part, every partition that somebody wants is read by one member (G5)."""
        world = self.world
        world.rest()
        reading = [partition for one in world.living() for partition in one.reads]
        assert len(reading) == len(set(reading))
        if world.living() and world.group.members:
            assert set(reading) == world.expected()
            event("came to rest")

    @invariant()
    def holds(self) -> None:
        self.world.check()


ConsumerGroups.TestCase.settings = settings(examples(60, thorough=3000), stateful_step_count=50)
test_consumer_groups = ConsumerGroups.TestCase
