"""Whatever members, the network, the store and the clock do to a group, in any order: the invariants hold."""

import hypothesis.strategies as st
from hypothesis import event, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from group_model import DELAY, LONGEST, PARTITIONS, Client, World
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from twin.profile import examples

CHOICES = (("range",), ("range", "sticky"), ("sticky", "range"))
STATICS = ("alpha", "beta")


class Groups(RuleBasedStateMachine):
    """Members join, sync, commit, leave, die, repeat themselves; the coordinator crashes, moves and forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def pick(self, data: st.DataObject, *, idle: bool = False) -> Client | None:
        clients = [one for one in self.world.clients if one.alive and not one.fenced]
        if idle:
            clients = [one for one in clients if one.waiter is None]
        return data.draw(st.sampled_from(clients)) if clients else None

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        for _ in range(data.draw(st.integers(1, 3))):
            self.come(None, CHOICES[1])

    @rule(
        instance_id=st.sampled_from((None, None, *STATICS)),
        protocols=st.sampled_from(CHOICES),
        times=st.sampled_from(((10.0, 30.0), (LONGEST, 20.0))),
    )
    def come(
        self, instance_id: str | None, protocols: tuple[str, ...], times: tuple[float, float] = (10.0, 30.0)
    ) -> None:
        clients = self.world.clients
        if len(self.living()) < 5:
            clients.append(Client(len(clients), instance_id, protocols, *times))

    @rule(data=st.data(), requires_member_id=st.booleans(), supports_skipping_assignment=st.booleans())
    def join(self, data: st.DataObject, requires_member_id: bool, supports_skipping_assignment: bool) -> None:
        if (client := self.pick(data, idle=True)) is not None:
            self.world.join(
                client, requires_member_id=requires_member_id, supports_skipping_assignment=supports_skipping_assignment
            )

    @rule(data=st.data())
    def everybody_joins(self, data: st.DataObject) -> None:
        for client in self.world.clients:
            if client.alive and not client.fenced and client.waiter is None and not client.synced:
                self.world.join(client, requires_member_id=data.draw(st.booleans()))
                if client.error == "MEMBER_ID_REQUIRED" and client.waiter is None:
                    self.world.join(client)

    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        client = self.pick(data, idle=True)
        if client is not None and client.generation >= 0:
            self.world.sync(client)

    @rule()
    def everybody_syncs(self) -> None:
        for client in self.world.clients:
            if client.alive and client.waiter is None and client.generation >= 0 and not client.synced:
                self.world.sync(client)

    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """A client gives up waiting and asks anew on another connection, while the old request is still there."""
        client = self.pick(data)
        if client is not None and client.waiter is not None and client.member_id:
            client.waiter = None
            self.world.join(client)

    @rule(data=st.data())
    def change_protocols(self, data: st.DataObject) -> None:
        if (client := self.pick(data, idle=True)) is not None:
            client.protocols = data.draw(st.sampled_from(CHOICES))
            self.world.join(client)

    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        client = self.pick(data)
        if client is not None and client.generation >= 0:
            self.world.heartbeat(client)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        if (client := self.pick(data)) is not None and client.generation >= 0:
            self.world.commit(client)

    @rule(data=st.data(), behind=st.integers(1, 3))
    def zombie_commits(self, data: st.DataObject, behind: int) -> None:
        client = self.pick(data)
        if client is not None and client.generation >= behind and self.world.group.members:
            former = client.generation
            client.generation = self.world.group.generation - behind
            assert self.world.commit(client)
            client.generation = former

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = self.pick(data, idle=True)
        if client is not None and client.member_id:
            self.world.leave(client)

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        if (client := self.pick(data)) is not None:
            self.world.kill(client)

    @rule(data=st.data())
    def restart_static(self, data: st.DataObject) -> None:
        """Its process is another one, without an id. In a stable group nobody else notices (G6)."""
        clients = [one for one in self.world.clients if one.alive and one.instance_id and one.synced]
        if not clients:
            return
        before = data.draw(st.sampled_from(clients))
        group, world = self.world.group, self.world
        quiet = group.state is ClassicGroupState.STABLE and not world.writes and before.member_id in group.members
        generation = group.generation
        before.alive = data.draw(st.booleans())  # it may not know yet that it was replaced
        after = Client(len(world.clients), before.instance_id, before.protocols, before.session, before.rebalance)
        world.clients.append(after)
        world.join(after, supports_skipping_assignment=data.draw(st.booleans()))
        if quiet:
            assert (group.generation, group.state) == (generation, ClassicGroupState.STABLE)
            assert after.waiter is not None, "told before it was stored"
            world.store_all()
            assert after.generation == generation
            assert not after.leader
            if before.alive:
                assert world.commit(before) == "FENCED_INSTANCE_ID"
            event("static restart without rebalance")

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
        before, generation = world.group.state, world.group.generation
        members = {one.id: one.assignment for one in world.group.members}
        world.crash(applied=False)
        if before is ClassicGroupState.STABLE:
            assert {one.id: one.assignment for one in world.group.members} == members
            for client in world.clients:
                if client.alive and client.member_id in members and client.synced and client.generation == generation:
                    assert world.heartbeat(client) == ""
            event("coordinator replaced without rebalance")

    @rule()
    def fail_write(self) -> None:
        for client in self.living()[:1]:
            if client.waiter is None:
                self.world.join(client)
        self.world.fail_write()
        event("a write failed")

    @rule(seconds=st.floats(0.1, 20.0))
    def pass_time(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(seconds=st.floats(1.0, 100.0))
    def stand_still(self, seconds: float) -> None:
        """The program stood still, and its clients could not help it: nobody expires for that (G9)."""
        stable = self.world.group.state is ClassicGroupState.STABLE
        members = {one.id for one in self.world.group.members if one.expires > self.world.now}
        self.world.now += seconds
        self.world.group.extend_deadlines(seconds)
        self.world.group.tick(self.world.now)
        for asked in self.world.asked.values():
            asked.at += seconds
        if stable:
            assert members <= {one.id for one in self.world.group.members}
        self.world.settle()

    @precondition(lambda self: any(one.alive and not one.fenced for one in self.world.clients))
    @rule()
    def come_to_rest(self) -> None:
        """Left alone, with everybody doing their part, the group is stable in time and every partition owned (G5)."""
        world = self.world
        world.store_all()
        spent = 0.0
        while not self.rests():
            assert spent <= 4 * (LONGEST + DELAY), "the group does not come to rest"
            self.live()
            world.advance(1.0)
            world.store_all()
            spent += 1.0
        owned = sorted(partition for one in self.living() for partition in one.owned)
        assert owned == sorted(PARTITIONS) or not self.living()
        event("came to rest")

    def living(self) -> list[Client]:
        return [one for one in self.world.clients if one.alive and not one.fenced]

    def rests(self) -> bool:
        group = self.world.group
        living = self.living()
        return not living or (
            group.state is ClassicGroupState.STABLE
            and {one.id for one in group.members} == {one.member_id for one in living}
            and all(one.synced and one.generation == group.generation for one in living)
        )

    def live(self) -> None:
        """One turn of a client's loop."""
        for client in self.living():
            if client.waiter is not None:
                continue
            if client.synced or (client.generation >= 0 and client.error == ""):
                error = self.world.heartbeat(client)
                if error == "REBALANCE_IN_PROGRESS":
                    self.world.join(client)
                elif not error and not client.synced:
                    self.world.sync(client)
            else:
                self.world.join(client)

    @invariant()
    def holds(self) -> None:
        self.world.check()


Groups.TestCase.settings = settings(examples(60, thorough=3000), stateful_step_count=50)
test_groups = Groups.TestCase
