"""One group: carries out what the table says. Pure: time and new ids come from outside, answers gather in `answers`.

Whoever calls takes the answers, and where `changed`, stores the group before giving them out.
"""

from typing import NamedTuple

from korvet_fast.core.groups.consumer.group import ConsumerRules
from korvet_fast.core.groups.machine import STORED, TABLE, Act, Event, State
from korvet_fast.core.groups.members import Join, Joined, Member, Members, Sync, Synced, Ticket, refuse_sync

PENDING = 10_000  # ids given out that nobody has joined with yet; more than that are a mistake, or an attack


class Rules(NamedTuple):
    """`delay`: seconds that an empty group waits for more members. `size`: the most members.

    `consumer`: what holds for groups of the consumer protocol.
    """

    delay: float
    size: int
    consumer: ConsumerRules = ConsumerRules()


class Group:
    """All times are seconds of one monotonic clock. Faults are names of `korvet_fast.errors`, "" for none."""

    def __init__(self, rules: Rules) -> None:
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members = Members()
        self.pending: dict[str, float] = {}  # ids given out for a second join, and until when they are waited for
        self.answers: list[tuple[Ticket, Joined | Synced]] = []
        self.changed = False
        self._rules = rules
        self._over: float | None = None  # when the joining, or the syncing, has to be over
        self._latest: float | None = None  # in the joining of a group that was empty: how far `_over` may move
        self._newcomers = False  # somebody came since `_over` moved
        self._unsynced: set[str] = set()

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and is there."""
        return self.state is State.EMPTY

    @property
    def is_dead(self) -> bool:
        """Whether it is being deleted."""
        return self.state is State.DEAD

    @property
    def in_use(self) -> bool:
        """Whether somebody is in it, or on the way."""
        return bool(self.members or self.pending)

    def _step(self, event: Event, now: float) -> Act:
        before = self.state
        act, self.state = TABLE[before, event]
        self.changed = self.changed or act in STORED
        if self.state is State.PREPARING and before is not State.PREPARING:
            self._prepare(now, first=before is State.EMPTY)
        return act

    # -- joining -----------------------------------------------------------------------------------------------------

    def join(self, ask: Join, ticket: Ticket, now: float) -> None:
        """Somebody wants to be a member, or to go on as one. The answer may take until everybody has joined."""
        known = self.members.get(ask.member_id)
        static = self.members.of_instance(ask.instance_id) if not ask.member_id else None
        if fault := self._refuse_join(ask, known or static):
            self.answers.append((ticket, Joined(fault, "" if fault == "GROUP_MAX_SIZE_REACHED" else ask.member_id)))
        elif known is not None:
            self._enter(known, self._classify(known, ask), ask, ticket, now)
        elif static is not None:
            self._return(static, ask, ticket, now)
        elif ask.twice and not ask.member_id and ask.instance_id is None:
            self.pending[ask.fresh_id] = now + ask.session
            self.answers.append((ticket, Joined("MEMBER_ID_REQUIRED", ask.fresh_id)))
        else:
            member = Member(ask.member_id or ask.fresh_id, ask.instance_id, known=bool(ask.member_id))
            self.pending.pop(member.id, None)
            self.members.add(member)
            self._newcomers = True
            self._enter(member, Event.JOIN_NEW, ask, ticket, now)

    def _refuse_join(self, ask: Join, member: Member | None) -> str:
        if self.state is State.DEAD:
            return TABLE[State.DEAD, Event.JOIN_NEW].act.fault
        invited = not ask.member_id or ask.member_id in self.pending
        fault = "" if invited else self.members.fault_of(ask.member_id, ask.instance_id)
        # Who was replaced has to learn that, be the group full or not: it would ask for ever.
        if fault != "FENCED_INSTANCE_ID" and not self._has_room(ask, member):
            return "GROUP_MAX_SIZE_REACHED"
        if fault:
            return fault
        fits = ask.protocol_type and (not self.members or ask.protocol_type == self.protocol_type)
        return "" if fits and self.members.agree(ask.protocols, member) else "INCONSISTENT_GROUP_PROTOCOL"

    def _has_room(self, ask: Join, member: Member | None) -> bool:
        if self.state is State.PREPARING:
            # Counted by who has joined: where a group has grown too large, the last to come back have to go.
            joined = sum(one.joining is not None for one in self.members)
            known = member is not None and member.joining is not None
        else:
            joined, known = len(self.members), member is not None
        return known or (joined < self._rules.size and (bool(ask.member_id) or len(self.pending) < PENDING))

    def _classify(self, member: Member, ask: Join) -> Event:
        if member.protocols != ask.protocols:
            return Event.JOIN_CHANGED
        return Event.JOIN_LEADER if member.id == self.leader else Event.JOIN_FOLLOWER

    def _return(self, member: Member, ask: Join, ticket: Ticket, now: float) -> None:
        """A static member that has no id any more: whoever still uses the old one is fenced off (KIP-345)."""
        self._answer(member, "FENCED_INSTANCE_ID")
        if led := member.id == self.leader:
            self.leader = ask.fresh_id
        self._unsynced.discard(member.id)
        former = member.id
        self.members.rename(member, ask.fresh_id)
        self.members.change(member, ask.protocols)
        same = self.protocol is None or self.members.choose() == self.protocol
        self._enter(
            member, Event.JOIN_RETURNED if same else Event.JOIN_CHANGED, ask, ticket, now, former if led else ""
        )

    def _enter(self, member: Member, event: Event, ask: Join, ticket: Ticket, now: float, led_as: str = "") -> None:
        """The join of a member. `led_as`: the id under which a member that returns was the leader."""
        member.take(ask, now)
        self.members.change(member, ask.protocols)
        self.protocol_type = ask.protocol_type
        act = self._step(event, now)
        if act is Act.PARK_JOIN:
            self._answer(member, "REBALANCE_IN_PROGRESS")  # its client waits for the answer to the later request
            member.joining = ticket
            self._look(now)
            return
        answer = self._tell_joined(member)
        if act is Act.REPLACE and led_as:
            # The assignment stays: a leader that cannot be told so is told that it is not the leader (KIP-814).
            answer = answer._replace(skip_assignment=True) if ask.skips else answer._replace(leader=led_as, members=())
        self.answers.append((ticket, answer))

    def _tell_joined(self, member: Member) -> Joined:
        chosen = self.protocol
        leads = member.id == self.leader
        told = tuple((one.id, one.instance_id, one.metadata(chosen)) for one in self.members) if leads else ()
        return Joined("", member.id, self.generation, self.protocol_type, chosen, self.leader or "", told)

    # -- the two phases of a rebalance -------------------------------------------------------------------------------

    def _prepare(self, now: float, *, first: bool) -> None:
        for member in self.members:
            if member.syncing is not None:
                member.expires = now + member.session
                self._answer(member, "REBALANCE_IN_PROGRESS")
        self._unsynced.clear()
        self._newcomers = False
        self._over = now + self.members.longest_rebalance()
        self._latest = None
        if first and self._rules.delay > 0:
            self._latest = self._over
            self._over = min(now + self._rules.delay, self._latest)

    def _look(self, now: float) -> None:
        """End the joining if nobody is waited for any more."""
        if self.state is not State.PREPARING:
            return
        settled = self._latest is None and not self.pending
        if not self.members or (settled and all(one.joining is not None for one in self.members)):
            self._form(now)

    def _form(self, now: float) -> None:
        for member in list(self.members):
            if member.joining is None and member.instance_id is None:
                self.members.remove(member)
        self._latest = None
        if not self.members:
            self._step(Event.EMPTIED, now)
            self.generation += 1
            self.protocol = self.leader = self._over = None
            return
        joined = [member for member in self.members if member.joining is not None]
        self._over = now + self.members.longest_rebalance()
        if not joined:
            return  # static members that are away may come back while their sessions last
        self._step(Event.FORMED, now)
        self.generation += 1
        self.protocol = self.members.choose()
        if self.leader not in {member.id for member in joined}:
            self.leader = joined[0].id
        self._unsynced = {member.id for member in joined}
        for member in joined:
            member.known = True
            member.expires = now + member.session
            self.answers.append((member.joining, self._tell_joined(member)))
            member.joining = None

    def sync(self, ask: Sync, ticket: Ticket, now: float) -> None:
        """A member asks for its assignment; the leader brings everybody's."""
        member = self.members.get(ask.member_id)
        fault = self._refuse(ask.member_id, ask.instance_id, ask.generation)
        if not fault and not self._agrees(ask):
            fault = "INCONSISTENT_GROUP_PROTOCOL"
        if fault or member is None:
            self.answers.append((ticket, Synced(fault)))
            return
        act = self._step(Event.SYNC_LEADER if member.id == self.leader else Event.SYNC_FOLLOWER, now)
        if act.fault:
            self.answers.append((ticket, Synced(act.fault)))
            return
        self._answer(member, "REBALANCE_IN_PROGRESS")  # its client waits for the answer to the later request
        self._unsynced.discard(member.id)
        member.expires = now + member.session
        member.syncing = ticket
        if act is Act.ASSIGN:
            for one in self.members:
                one.assignment = ask.assignments.get(one.id, b"")
        if act is not Act.PARK_SYNC:
            self._give(now)

    def _agrees(self, ask: Sync) -> bool:
        return ask.protocol_type in (None, self.protocol_type) and ask.protocol in (None, self.protocol)

    def _give(self, now: float) -> None:
        for member in self.members:
            if member.syncing is not None:
                member.expires = now + member.session
                self.answers.append((member.syncing, Synced("", self.protocol_type, self.protocol, member.assignment)))
                member.syncing = None
        if not self._unsynced:
            self._over = None

    # -- while it lasts ----------------------------------------------------------------------------------------------

    def _refuse(self, member_id: str, instance_id: str | None, generation: int) -> str:
        if self.state is State.DEAD:
            return TABLE[State.DEAD, Event.HEARTBEAT].act.fault
        if fault := self.members.fault_of(member_id, instance_id):
            return fault
        return "" if generation == self.generation else "ILLEGAL_GENERATION"

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> str:
        """A member lives; the fault."""
        fault = self._refuse(member_id, instance_id, generation)
        return fault or self._hear(member_id, Event.HEARTBEAT, now)

    def commit(self, member_id: str, instance_id: str | None, generation: int, now: float) -> str:
        """Whether offsets are taken of whom says to be this member, or (generation -1) not to be one; the fault."""
        outside = generation < 0 and (self.state is State.EMPTY or (not member_id and instance_id is None))
        if outside or self.state is State.DEAD:
            return self._step(Event.COMMIT_OUTSIDE, now).fault
        fault = self._refuse(member_id, instance_id, generation)
        return fault or self._hear(member_id, Event.COMMIT, now)

    def _hear(self, member_id: str, event: Event, now: float) -> str:
        member = self.members.get(member_id)
        assert member is not None
        member.expires = now + member.session
        return self._step(event, now).fault

    # -- going -------------------------------------------------------------------------------------------------------

    def leave(self, member_id: str, instance_id: str | None, now: float) -> str:
        """A member goes, or (no member id) whoever has this instance id is told to; the fault."""
        if self.state is State.DEAD:
            return TABLE[State.DEAD, Event.LOST].act.fault
        if self.pending.pop(member_id, None) is not None:
            self._look(now)
            return ""
        if not member_id and (static := self.members.of_instance(instance_id)) is not None:
            member_id = static.id
        fault = self.members.fault_of(member_id, instance_id)
        if not fault and (member := self.members.get(member_id)) is not None:
            self._lose(member, now)
        return fault

    def withdraw(self, ticket: Ticket, now: float) -> None:
        """Nobody waits for this answer any more: it is given at once. Whoever asked may ask again."""
        member = next((one for one in self.members if ticket in (one.joining, one.syncing)), None)
        if member is None:
            return
        self._answer(member, "COORDINATOR_LOAD_IN_PROGRESS")
        member.expires = now + member.session
        if not member.known and member.instance_id is None:
            self._lose(member, now)  # it does not know its id: it will come as somebody else

    def delete(self, now: float) -> str:
        """Nobody may use it from now on; the fault if somebody does."""
        return self._step(Event.DELETED, now).fault

    def abandon(self, fault: str) -> None:
        """Everybody who waits is told why in vain."""
        for member in self.members:
            self._answer(member, fault)

    def _lose(self, member: Member, now: float) -> None:
        self._answer(member, "UNKNOWN_MEMBER_ID")
        self.members.remove(member)
        self._unsynced.discard(member.id)
        self._step(Event.LOST, now)
        self._look(now)

    def _answer(self, member: Member, fault: str) -> None:
        """Whatever of this member waits gets a fault."""
        if member.joining is not None:
            told = member.id if member.known else ""
            self.answers.append((member.joining, Joined(fault, told)))
        if member.syncing is not None:
            self.answers.append((member.syncing, refuse_sync(fault)))
        member.joining = member.syncing = None

    # -- time --------------------------------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        """When `tick` has something to do; None while it has not."""
        times = [member.expires for member in self.members if not member.waits]
        times += self.pending.values()
        if self._over is not None:
            times.append(self._over)
        return min(times, default=None)

    def tick(self, now: float) -> None:
        """Do what the time has come for."""
        for identity in [identity for identity, until in self.pending.items() if until <= now]:
            del self.pending[identity]
        for member in list(self.members):
            if not member.waits and member.expires <= now and member.id in self.members:
                self._lose(member, now)
        self._look(now)
        if self._over is not None and self._over <= now:
            self._end_phase(now)

    def _end_phase(self, now: float) -> None:
        if self.state is not State.PREPARING:
            self._over = None
            for identity in list(self._unsynced):
                if (member := self.members.get(identity)) is not None:
                    self._lose(member, now)
        elif self._latest is not None and self._newcomers and now < self._latest:
            self._newcomers = False
            self._over = min(now + self._rules.delay, self._latest)
        else:
            self._form(now)

    def forgive(self, seconds: float) -> None:
        """So long nobody could be heard: it is not held against anybody."""
        for member in self.members:
            member.expires += seconds
        for identity in self.pending:
            self.pending[identity] += seconds
        if self._over is not None:
            self._over += seconds
        if self._latest is not None:
            self._latest += seconds

    def resume(self, now: float) -> None:
        """Just read from the store: everybody has a full session, and those who have no assignment yet may sync."""
        for member in self.members:
            member.known = True
            member.expires = now + member.session
        if self.state is State.COMPLETING:
            self._unsynced = {member.id for member in self.members}
            self._over = now + self.members.longest_rebalance()
