"""One group of the consumer protocol: epochs, the target, and who has what on the way there. Pure, like `groups.group`.

A partition goes to its new owner when the old one has said in a heartbeat that it has it no more, or is gone.
Whoever calls takes the answers, and where `changed`, stores the group before giving them out.
"""

import math
from collections import Counter
from typing import Final, NamedTuple

from korvet_fast.core.groups.consumer.admission import identify
from korvet_fast.core.groups.consumer.assignors import ASSIGNORS, Subscriber
from korvet_fast.core.groups.consumer.machine import TABLE, Act, Finding, GroupState, Stage
from korvet_fast.core.groups.consumer.members import (
    LEAVES,
    PAUSES,
    Beat,
    Beaten,
    Catalogue,
    ConsumerMember,
    ConsumerMembers,
    Parts,
    TopicView,
)
from korvet_fast.core.groups.members import Ticket

_NOTHING: Final[Parts] = frozenset()
_ROOM: Final = 1000  # epochs left out where nobody knows which the last one was


class ConsumerRules(NamedTuple):
    """`session`: seconds of silence after which a member is gone. `size`: the most members.

    `assignors`: those that members may ask for; the first is used where nobody asks.
    """

    session: float = 45.0
    size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = tuple(ASSIGNORS)


class ConsumerGroup:
    """All times are seconds of one monotonic clock. Faults are names of `korvet_fast.errors`, "" for none.

    `epoch` rises with every change of who is there, of what they read, and of the topics they read. `target` was made
    for `target_epoch`: what members are to have, by member id. `seen`: the topics it was made from, by name.
    `revision` counts what was stored, on from the generation of the classic group that this one was.
    """

    protocol_type: Final = "consumer"

    def __init__(self, rules: ConsumerRules, epoch: int = 0) -> None:
        self.epoch = self.target_epoch = self.revision = epoch
        self.members = ConsumerMembers()
        self.target: dict[str, Parts] = {}
        self.seen: dict[str, TopicView] = {}
        self.answers: list[tuple[Ticket, Beaten]] = []
        self.changed = False
        self.is_dead = False
        self._rules = rules
        self._owners: dict[tuple[bytes, int], ConsumerMember] = {}
        self._due = math.inf  # the first end of a session or of a wait, or earlier: heartbeats only move them away
        self._looked = -1  # version of the topics
        self._wanted: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}  # by subscription: ids of topics

    @property
    def state(self) -> GroupState:
        """As Kafka says it."""
        if self.is_dead:
            return GroupState.DEAD
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        settled = all(
            one.stage is Stage.STABLE and one.epoch == self.target_epoch and not one.away for one in self.members
        )
        return GroupState.STABLE if settled else GroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and is there."""
        return not self.members and not self.is_dead

    @property
    def in_use(self) -> bool:
        """Whether somebody is in it."""
        return len(self.members) > 0

    @property
    def assignor(self) -> str:
        """The one that most members ask for, of those that may be used."""
        asked = Counter(one.assignor for one in self.members if one.assignor in self._rules.assignors)
        found = asked.most_common(1)
        return (found[0][0] if found else None) or self._rules.assignors[0]

    # -- heartbeats --------------------------------------------------------------------------------------------------

    def heartbeat(self, ask: Beat, ticket: Ticket, topics: Catalogue, now: float) -> None:
        """A member joins (epoch 0), lives, or leaves (`LEAVES`, `PAUSES`)."""
        member, fault = identify(self.members, ask, self._rules.size)
        if self.is_dead:
            self.answers.append((ticket, Beaten("COORDINATOR_NOT_AVAILABLE")))
        elif fault:
            self.answers.append((ticket, Beaten(fault)))
        elif member is not None and ask.epoch < 0:
            self._go(member, ask.epoch, now)
            self.answers.append((ticket, Beaten("", ask.member_id, ask.epoch)))
        else:
            self.answers.append((ticket, self._hear(self._admit(member, ask), ask, topics, now)))

    def _hear(self, member: ConsumerMember, ask: Beat, topics: Catalogue, now: float) -> Beaten:
        profile, subscription, told = member.profile, member.subscription, member.assigned
        member.take(ask)
        member.expires = now + self._rules.session
        self.changed = self.changed or member.profile != profile
        self._look(topics, news=member.subscription != subscription)
        if self.epoch > self.target_epoch:
            self._assign()
        self._reconcile(member, ask.owned, now)
        self._due = min(self._due, _end(member))
        news = ask.full or member.assigned != told
        return Beaten("", member.id, member.epoch, member.assigned if news else None)

    def _admit(self, member: ConsumerMember | None, ask: Beat) -> ConsumerMember:
        """Make a newcomer a member, and give one that comes back as somebody else its place."""
        identity = ask.member_id or ask.fresh_id
        if member is None:
            member = ConsumerMember(identity)
            member.instance_id = ask.instance_id
            self.members.add(member)
            self.changed = True
        elif member.id != identity:
            self.target[identity] = self.target.pop(member.id, _NOTHING)
            self.members.rename(member, identity)
            member.epoch = member.previous_epoch = 0
            self.changed = True
        elif ask.epoch == 0 and ask.instance_id not in (None, member.instance_id):
            self.members.name(member, ask.instance_id)
            self.changed = True
        return member

    # -- the target --------------------------------------------------------------------------------------------------

    def _look(self, topics: Catalogue, *, news: bool) -> None:
        """See what members want to read, and what there is of it; `news`: one of them wants something else."""
        if topics.version == self._looked and not news and self.epoch == self.target_epoch:
            return
        self._looked = topics.version
        self._wanted = {}
        seen: dict[str, TopicView] = {}
        for names, regex in {member.subscription for member in self.members}:
            wanted = set(names)
            if regex:
                wanted.update(topics.match(regex))
            found = {name: view for name in wanted if (view := topics.get(name)) is not None}
            self._wanted[names, regex] = frozenset(view.id for view in found.values())
            seen |= found
        if self.epoch == self.target_epoch and (news or seen != self.seen or self.epoch == 0):
            self._raise_epoch()
        self.seen = seen

    def _raise_epoch(self) -> None:
        self.epoch += 1
        self.changed = True

    def _assign(self) -> None:
        members = {
            one.id: Subscriber(self._wanted[one.subscription], self.target.get(one.id, _NOTHING), one.instance_id)
            for one in self.members
        }
        self.target = ASSIGNORS[self.assignor](members, {view.id: view.partitions for view in self.seen.values()})
        self.target_epoch = self.epoch
        self.changed = True

    # -- what members have -------------------------------------------------------------------------------------------

    def _reconcile(self, member: ConsumerMember, owned: Parts | None, now: float) -> None:
        """Bring a member nearer to its target. `owned`: what it says to have; None: as it said before."""
        target = self.target.get(member.id, _NOTHING)
        kept, excess = member.assigned & target, member.assigned - target
        free = frozenset(part for part in target - kept if self._owners.get(part, member) is member)
        if member.stage is Stage.STABLE and member.epoch == self.target_epoch:
            finding = Finding.SETTLED
        elif member.stage is Stage.UNREVOKED and _has(owned, member.revoking):
            finding = Finding.HOLDS
        elif _has(owned, excess):
            finding = Finding.EXCESS
        else:
            finding = Finding.WAITS if target - kept - free else Finding.WHOLE
        act, then = TABLE[member.stage, finding]
        if act is Act.REPEAT:
            return
        progress = member.progress
        member.stage = then
        if act is Act.REVOKE:
            member.revoke_by = now + member.rebalance
            self._give(member, kept, excess)
        else:
            member.revoke_by = None
            member.advance(self.target_epoch)
            self._give(member, kept | free, _NOTHING)
        self.changed = self.changed or member.progress != progress

    def _give(self, member: ConsumerMember, assigned: Parts, revoking: Parts) -> None:
        for part in member.assigned | member.revoking:
            del self._owners[part]
        member.assigned, member.revoking = assigned, revoking
        for part in assigned | revoking:
            self._owners[part] = member

    # -- going -------------------------------------------------------------------------------------------------------

    def _go(self, member: ConsumerMember, epoch: int, now: float) -> None:
        if epoch == LEAVES:
            self._lose(member)
            return
        assert epoch == PAUSES
        # It has stopped reading. What it was to keep stays its own until it is back, or its session is over.
        self._give(member, member.assigned, _NOTHING)
        if member.stage is Stage.UNREVOKED:
            member.stage = Stage.UNRELEASED
        member.revoke_by = None
        member.away = True
        member.expires = now + self._rules.session
        self.changed = True

    def _lose(self, member: ConsumerMember) -> None:
        self._give(member, _NOTHING, _NOTHING)
        self.members.remove(member)
        self.target.pop(member.id, None)
        self._raise_epoch()

    def remove(self, member_id: str, instance_id: str | None) -> str:
        """An administrator has a static member go; the fault. Others say themselves that they go, in a heartbeat."""
        if self.is_dead:
            return "COORDINATOR_NOT_AVAILABLE"
        member = self.members.of_instance(instance_id)
        if member is None:
            return "UNKNOWN_MEMBER_ID"
        if member_id not in ("", member.id):
            return "FENCED_INSTANCE_ID"
        self._lose(member)
        return ""

    def delete(self, now: float) -> str:
        """Nobody may use it from now on; the fault if somebody does."""
        if self.is_dead:
            return "COORDINATOR_NOT_AVAILABLE"
        self.is_dead = not self.members
        return "" if self.is_dead else "NON_EMPTY_GROUP"

    # -- offsets -----------------------------------------------------------------------------------------------------

    def commit(self, member_id: str, epoch: int, *, knows: bool) -> str:
        """Whether offsets are taken of this member, or (epoch -1, nobody is there) of somebody else; the fault.

        `knows`: its client knows what an epoch is, so that it can tell a stale one from a lost membership.
        """
        if self.is_dead:
            return "COORDINATOR_NOT_AVAILABLE"
        if epoch < 0 and not self.members:
            return ""
        fault = self._check(member_id, epoch)
        return "UNSUPPORTED_VERSION" if fault != "UNKNOWN_MEMBER_ID" and not knows else fault

    def fetch(self, member_id: str | None, epoch: int) -> str:
        """Whether this member may see what is committed; the fault. Who does not say to be one may."""
        return "" if not member_id and epoch < 0 else self._check(member_id or "", epoch)

    def _check(self, member_id: str, epoch: int) -> str:
        member = self.members.get(member_id)
        if member is None:
            return "UNKNOWN_MEMBER_ID"
        return "" if epoch == member.epoch and not member.away else "STALE_MEMBER_EPOCH"

    # -- time --------------------------------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        """When `tick` may have something to do, never too late; None while it has not."""
        return self._due if self.members else None

    def tick(self, now: float) -> None:
        """Whoever was silent for too long, or does not give up what it was asked to, is gone."""
        for member in list(self.members):
            if _end(member) <= now:
                self._lose(member)
        self._due = min((_end(member) for member in self.members), default=math.inf)

    def forgive(self, seconds: float) -> None:
        """So long nobody could be heard: it is not held against anybody."""
        self._due += seconds
        for member in self.members:
            member.expires += seconds
            if member.revoke_by is not None:
                member.revoke_by += seconds

    def leap(self) -> None:
        """The store's history broke, and may have lost epochs that were told: none of them is to come twice."""
        self.epoch += _ROOM
        self.changed = True

    def resume(self, now: float) -> None:
        """Just read from the store: everybody has a full session, and as long to give up partitions."""
        for member in self.members:
            member.expires = now + self._rules.session
            if member.stage is Stage.UNREVOKED:
                member.revoke_by = now + member.rebalance
            for part in member.assigned | member.revoking:
                self._owners[part] = member
            self._due = min(self._due, _end(member))


def _has(owned: Parts | None, parts: Parts) -> bool:
    """Whether a member that says to own this may still have some of these."""
    return bool(parts) and (owned is None or not parts.isdisjoint(owned))


def _end(member: ConsumerMember) -> float:
    return member.expires if member.revoke_by is None else min(member.expires, member.revoke_by)
