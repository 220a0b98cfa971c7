"""One group of the consumer protocol: its epoch, its target assignment, and its members' steps to that target.

Pure, like `classic.group`: after each call the caller stores the group if it has `changed`, and then gives the
`answers`. A partition goes to its new owner when the former owner is gone, or has said in a heartbeat that it does not
have the partition any more.
"""

import math
from collections import Counter
from collections.abc import Collection
from typing import Final

from korvet_fast.core.groups.budget import MEMBER, PARTITION
from korvet_fast.core.groups.config import ConsumerConfig
from korvet_fast.core.groups.consumer.admission import identify, may_grow, refuse_growth
from korvet_fast.core.groups.consumer.assignments import CurrentAssignments
from korvet_fast.core.groups.consumer.assignors import ASSIGNORS, Subscriber
from korvet_fast.core.groups.consumer.machine import ConsumerGroupState, MemberState
from korvet_fast.core.groups.consumer.members import (
    LEAVES,
    PAUSES,
    Catalogue,
    ConsumerMember,
    ConsumerMembers,
    HeartbeatRequest,
    HeartbeatResult,
)
from korvet_fast.core.groups.consumer.partition_set import Partitions, TopicIdPartition
from korvet_fast.core.groups.consumer.subscriptions import SubscribedTopics
from korvet_fast.core.groups.deadline import Deadline
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import NONE, Errors

_NOTHING: Final = Partitions()
_LEFT_OUT: Final = 1000  # epochs, when the last epoch is not known


class ConsumerGroup:
    """All times are seconds of one monotonic clock.

    `epoch` rises when members join or leave, when their subscriptions change, and when the topics that they read
    change. `target`: the target assignment for `target_epoch`, by member id. `subscribed`: the topics that the target
    was made from. `revision` counts the stored changes; if this was a classic group, it goes on from that group's
    generation. `memory`: bytes of memory, without the group's offsets, as of the last `count_memory`.
    """

    protocol_type: Final = "consumer"

    def __init__(self, config: ConsumerConfig, epoch: int = 0) -> None:
        self.epoch = self.target_epoch = self.revision = epoch
        self.members = ConsumerMembers()
        self.target: dict[str, Partitions] = {}
        self.subscribed = SubscribedTopics()
        self.answers: list[tuple[Waiter, HeartbeatResult]] = []
        self.changed = False
        self.is_dead = False
        self.memory = 0
        self.deadline = Deadline()
        self._config = config
        self._assignments = CurrentAssignments()

    @property
    def state(self) -> ConsumerGroupState:
        """The state that DescribeGroups and ListGroups name."""
        if self.is_dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        settled = all(
            one.state is MemberState.STABLE and one.epoch == self.target_epoch and not one.away for one in self.members
        )
        return ConsumerGroupState.STABLE if settled else ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and is not being deleted."""
        return not self.members and not self.is_dead

    @property
    def in_use(self) -> bool:
        """Whether the group has members."""
        return len(self.members) > 0

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for, of those that the settings allow."""
        asked = Counter(one.assignor for one in self.members if one.assignor in self._config.assignors)
        found = asked.most_common(1)
        return (found[0][0] if found else None) or self._config.assignors[0]

    # -- heartbeats --------------------------------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, waiter: Waiter, topics: Catalogue, now: float) -> None:
        """Handle a heartbeat: a member joins (epoch 0), stays, or leaves (`LEAVES`, `PAUSES`)."""
        member, error = identify(self.members, request, self._config.max_size)
        if not error and (member is None or may_grow(member, request)):
            error = refuse_growth(self._config.budget, self.memory, member, request)
        if self.is_dead:
            self.answers.append((waiter, HeartbeatResult(Errors.COORDINATOR_NOT_AVAILABLE)))
        elif error:
            self.answers.append((waiter, HeartbeatResult(error)))
        elif member is not None and request.epoch < 0:
            self._leave(member, request.epoch, now)
            self.answers.append((waiter, HeartbeatResult(NONE, request.member_id, request.epoch)))
        else:
            self.answers.append((waiter, self._update(self._find_or_add(member, request), request, topics, now)))

    def _update(
        self, member: ConsumerMember, request: HeartbeatRequest, topics: Catalogue, now: float
    ) -> HeartbeatResult:
        profile, subscription, told = member.profile, member.subscription, member.assigned
        member.update(request)
        member.expires = now + self._config.session_timeout
        self.changed = self.changed or member.profile != profile
        self._refresh_topics(topics, resubscribed=member.subscription != subscription)
        if self.epoch > self.target_epoch:
            self._assign()
        target = self.target.get(member.id, _NOTHING)
        if self._assignments.reconcile(member, target, self.target_epoch, request.owned, now):
            self.changed = True
        self.deadline.bring_forward(member.deadline)
        tell = request.is_full or (member.assigned is not told and member.assigned != told)
        return HeartbeatResult(NONE, member.id, member.epoch, member.assigned if tell else None)

    def count_memory(self) -> None:
        """Count the bytes of memory that all members take."""
        self.memory = sum(
            MEMBER
            + member.ids_memory
            + member.subscription_memory
            + PARTITION * (len(member.assigned) + len(self.target.get(member.id, _NOTHING)))
            for member in self.members
        )

    def _find_or_add(self, member: ConsumerMember | None, request: HeartbeatRequest) -> ConsumerMember:
        """The member that sent this: a newcomer is added, a static member that comes back gets its former place."""
        identity = request.member_id or request.new_member_id
        if member is None:
            member = ConsumerMember(identity)
            member.instance_id = request.instance_id
            self.members.add(member)
            self.changed = True
        elif member.id != identity:
            if (other := self.members.get(identity)) is not None:
                self._remove(other)  # this member replaces the other, whose partitions are free
            self.target[identity] = self.target.pop(member.id, _NOTHING)
            self.members.rename(member, identity)
            member.epoch = member.previous_epoch = 0
            self.changed = True
        elif request.epoch == 0 and request.instance_id not in (None, member.instance_id):
            self.members.set_instance(member, request.instance_id)
            self.changed = True
        return member

    # -- the target assignment ---------------------------------------------------------------------------------------

    def list_patterns(self, version: int, request: HeartbeatRequest) -> set[str]:
        """The regular expressions that this heartbeat needs matched with the topics of this version."""
        subscribes = request.epoch == 0 or request.names is not None or request.regex is not None
        if version == self.subscribed.version and not subscribes and self.epoch == self.target_epoch:
            return set()
        return {member.regex for member in self.members if member.regex}

    def _refresh_topics(self, topics: Catalogue, *, resubscribed: bool) -> None:
        """Find the topics that members read now. `resubscribed`: a member has changed its subscription."""
        assigned = self.epoch == self.target_epoch
        if topics.version == self.subscribed.version and not resubscribed and assigned:
            return
        changed = self.subscribed.refresh(topics, self.members)
        if assigned and (resubscribed or changed or self.epoch == 0):
            self._raise_epoch()

    def _raise_epoch(self) -> None:
        self.epoch += 1
        self.changed = True

    def _assign(self) -> None:
        ids = self.subscribed.ids()
        members = {
            one.id: Subscriber(ids[one.subscription], self.target.get(one.id, _NOTHING), one.instance_id)
            for one in self.members
        }
        counts = {view.id: view.partitions for view in self.subscribed.topics.values()}
        self.target = ASSIGNORS[self.assignor](members, counts)
        self.target_epoch = self.epoch
        self.changed = True

    # -- members that go ---------------------------------------------------------------------------------------------

    def _leave(self, member: ConsumerMember, epoch: int, now: float) -> None:
        if epoch == LEAVES:
            self._remove(member)
            return
        assert epoch == PAUSES
        # The member has stopped reading. It keeps its partitions until it is back, or its session is over.
        self._assignments.set(member, member.assigned, _NOTHING)
        if member.state is MemberState.UNREVOKED:
            member.state = MemberState.UNRELEASED
        member.revoke_by = None
        member.away = True
        member.expires = now + self._config.session_timeout
        self.changed = True

    def _remove(self, member: ConsumerMember) -> None:
        self._assignments.set(member, _NOTHING, _NOTHING)
        self.members.remove(member)
        self.target.pop(member.id, None)
        if not self.members:
            self.deadline.set(math.inf)
        self._raise_epoch()

    def remove(self, member_id: str, instance_id: str | None) -> Errors:
        """An administrator removes a static member; the error. Other members leave by a heartbeat of their own."""
        if self.is_dead:
            return Errors.COORDINATOR_NOT_AVAILABLE
        member = self.members.of_instance(instance_id)
        if member is None:
            return Errors.UNKNOWN_MEMBER_ID
        if member_id not in ("", member.id):
            return Errors.FENCED_INSTANCE_ID
        self._remove(member)
        return NONE

    def delete(self, now: float) -> Errors:
        """Mark the group as deleted; returns the error if it has members."""
        if self.is_dead:
            return Errors.COORDINATOR_NOT_AVAILABLE
        self.is_dead = not self.members
        return NONE if self.is_dead else Errors.NON_EMPTY_GROUP

    # -- offsets -----------------------------------------------------------------------------------------------------

    def commit(
        self, member_id: str, epoch: int, partitions: Collection[tuple[str, int]] = (), *, knows: bool
    ) -> Errors:
        """The error if offsets of this member, or (epoch -1, no members) of another client, are not taken.

        `partitions`: those that are committed, by topic name. `knows`: the client knows member epochs, and can tell a
        stale epoch from a lost membership. An earlier epoch of the member is taken for partitions that the member has
        had since then (KIP-1251): while a consumer closes, the answer with the new epoch may be on its way.
        """
        if self.is_dead:
            return Errors.COORDINATOR_NOT_AVAILABLE
        if epoch < 0 and not self.members:
            return NONE
        error = self._check(member_id, epoch)
        if error == Errors.STALE_MEMBER_EPOCH and self._held_since(self.members.get(member_id), epoch, partitions):
            error = NONE
        return Errors.UNSUPPORTED_VERSION if not knows and error != Errors.UNKNOWN_MEMBER_ID else error

    def fetch(self, member_id: str | None, epoch: int) -> Errors:
        """The error if this member may not read committed offsets. A client that names no member may."""
        return NONE if not member_id and epoch < 0 else self._check(member_id or "", epoch)

    def _held_since(self, member: ConsumerMember | None, epoch: int, partitions: Collection[tuple[str, int]]) -> bool:
        """Whether the member has had all of these partitions since this epoch, or longer."""
        if member is None or member.away or not partitions or epoch > member.epoch:
            return False
        for name, index in partitions:
            view = self.subscribed.topics.get(name)
            if view is None:
                return False
            if member.held_since(TopicIdPartition(view.id, index)) > epoch:
                return False
        return True

    def _check(self, member_id: str, epoch: int) -> Errors:
        member = self.members.get(member_id)
        if member is None:
            return Errors.UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch and not member.away else Errors.STALE_MEMBER_EPOCH

    # -- time --------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Remove members that were silent for too long, or did not give up partitions in time."""
        for member in list(self.members):
            if member.deadline <= now:
                self._remove(member)
        self.deadline.set(min((member.deadline for member in self.members), default=math.inf))

    def extend_deadlines(self, seconds: float) -> None:
        """Add so many seconds to all sessions: the broker heard no member in that time."""
        self.deadline.extend(seconds)
        for member in self.members:
            member.expires += seconds
            if member.revoke_by is not None:
                member.revoke_by += seconds

    def bump_epoch(self) -> None:
        """Skip epochs that the store may have lost when its history broke: no epoch is given out twice."""
        self.epoch += _LEFT_OUT
        self.changed = True

    def resume(self, now: float) -> None:
        """Begin again after the group was read from the store: members have full sessions, and full time to revoke."""
        for member in self.members:
            member.expires = now + self._config.session_timeout
            if member.state is MemberState.UNREVOKED:
                member.revoke_by = now + member.rebalance_timeout
            self._assignments.resume(member)
            self.deadline.bring_forward(member.deadline)
