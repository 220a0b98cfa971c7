"""One group of the classic protocol: it carries out what the table says.

Pure: the caller brings the time and new ids. After each call the caller stores the group if it has `changed`, and then
gives the `answers`.
"""

import math
from collections.abc import Iterable
from typing import Final

from korvet_fast.core.groups.classic.admission import Admission, classify_join
from korvet_fast.core.groups.classic.machine import STORED, TABLE, Act, ClassicGroupState, Event
from korvet_fast.core.groups.classic.members import ClassicMember, ClassicMembers
from korvet_fast.core.groups.classic.rebalance import Rebalance
from korvet_fast.core.groups.classic.requests import JoinRequest, JoinResult, SyncRequest, SyncResult
from korvet_fast.core.groups.classic.waiters import Waiters
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.deadline import Deadline
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import NONE, Errors

_INVITED: Final = 60.0  # seconds, at most, in which a newcomer must join with the member id that it was given


class ClassicGroup:
    """All times are seconds of one monotonic clock.

    `pending`: member ids that were given out for a second join, and until when the group waits for that join.
    """

    def __init__(self, config: GroupConfig) -> None:
        self.state = ClassicGroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members = ClassicMembers()
        self.pending: dict[str, float] = {}
        self.waiters = Waiters()
        self.answers = self.waiters.answers
        self.changed = False
        self.deadline = Deadline()
        self._initial_delay = config.initial_rebalance_delay
        self._budget = config.budget
        self._admission = Admission(config, self.members, self.pending, self.waiters)
        self._rebalance = Rebalance()

    @property
    def memory(self) -> int:
        """Bytes of memory, without the group's offsets."""
        return self.members.memory

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and is not being deleted."""
        return self.state is ClassicGroupState.EMPTY

    @property
    def is_dead(self) -> bool:
        """Whether the group is being deleted."""
        return self.state is ClassicGroupState.DEAD

    @property
    def in_use(self) -> bool:
        """Whether the group has members, or newcomers are about to join."""
        return bool(self.members or self.pending)

    def _step(self, event: Event, now: float) -> Act:
        before = self.state
        act, self.state = TABLE[before, event]
        self.changed = self.changed or act in STORED
        if self.state is ClassicGroupState.PREPARING and before is not ClassicGroupState.PREPARING:
            self._prepare(now, self._initial_delay if before is ClassicGroupState.EMPTY else 0.0)
        return act

    def join(self, request: JoinRequest, waiter: Waiter, now: float) -> None:
        """Let a client become a member, or stay one. The answer may come only when all members have joined."""
        known = self.members.get(request.member_id)
        static = self.members.of_instance(request.instance_id) if not request.member_id else None
        if error := self._admission.refuse_join(self.state, self.protocol_type, request, known or static):
            member_id = "" if error == Errors.GROUP_MAX_SIZE_REACHED else request.member_id
            self.waiters.answer(waiter, JoinResult(error, member_id))
        elif known is not None:
            self._enter(known, classify_join(known, request, self.leader), request, waiter, now)
        elif static is not None:
            self._replace_static(static, request, waiter, now)
        elif request.requires_member_id and not request.member_id and request.instance_id is None:
            until = self.pending[request.new_member_id] = now + min(request.session_timeout, _INVITED)
            self.deadline.bring_forward(until)
            self.waiters.answer(waiter, JoinResult(Errors.MEMBER_ID_REQUIRED, request.new_member_id))
        else:
            member_id = request.member_id or request.new_member_id
            member = ClassicMember(member_id, request.instance_id, known=bool(request.member_id))
            self.pending.pop(member.id, None)
            self.members.add(member)
            self._rebalance.newcomers = True
            self._enter(member, Event.JOIN_NEW, request, waiter, now)

    def _replace_static(self, member: ClassicMember, request: JoinRequest, waiter: Waiter, now: float) -> None:
        """A static member joins without its id: it gets a new one, and users of the old one are fenced (KIP-345)."""
        self.waiters.refuse(member, Errors.FENCED_INSTANCE_ID)
        if led := member.id == self.leader:
            self.leader = request.new_member_id
        self._rebalance.unsynced.discard(member.id)
        former = member.id
        self.members.rename(member, request.new_member_id)
        self.members.change(member, request.protocols)
        keeps = self.protocol is None or self.members.choose_protocol() == self.protocol
        event = Event.JOIN_RETURNED if keeps else Event.JOIN_CHANGED
        self._enter(member, event, request, waiter, now, former if led else "")

    def _enter(
        self, member: ClassicMember, event: Event, request: JoinRequest, waiter: Waiter, now: float, led_as: str = ""
    ) -> None:
        """Carry out the join of a member. `led_as`: the former id of a leader that returns under another id."""
        member.update(request, now)
        self.deadline.bring_forward(member.expires)
        self.members.change(member, request.protocols)
        self.protocol_type = request.protocol_type
        act = self._step(event, now)
        if act is Act.DELAY_JOIN:
            self.waiters.add_join(member, waiter)
            self._complete_join_if_all(now)
            return
        result = _tell_joined(self, member)
        if act is Act.REPLACE and led_as:
            result = result.keep_assignment(led_as, can_skip=request.supports_skipping_assignment)
        self.waiters.answer(waiter, result)

    def _prepare(self, now: float, initial_delay: float) -> None:
        for member in self.members:
            if member.syncing is not None:
                member.renew_session(now, self.deadline)
                self.waiters.refuse(member, Errors.REBALANCE_IN_PROGRESS)
        self.deadline.bring_forward(self._rebalance.begin_joining(now, self.members, initial_delay))

    def _complete_join_if_all(self, now: float) -> None:
        """Form the group if all members that are waited for have joined."""
        expected = self._rebalance.is_delayed or self.pending or self.waiters.joins < len(self.members)
        if self.state is ClassicGroupState.PREPARING and not (self.members and expected):
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        for member in list(self.members):
            if member.joining is None and member.instance_id is None:
                self.members.remove(member)
        if not self.members:
            self._step(Event.EMPTIED, now)
            self.generation += 1
            self.protocol = self.leader = None
            self._rebalance.end_joining()
            return
        joined = [member for member in self.members if member.joining is not None]
        self.deadline.bring_forward(self._rebalance.begin_syncing(now, self.members, joined))
        if not joined:
            return  # static members that are away may come back while their sessions last
        self._step(Event.FORMED, now)
        self.generation += 1
        self.protocol = self.members.choose_protocol()
        if self.leader not in {member.id for member in joined}:
            self.leader = joined[0].id
        for member in joined:
            member.known = True
            member.renew_session(now, self.deadline)
            self.waiters.answer_join(member, _tell_joined(self, member))

    def sync(self, request: SyncRequest, waiter: Waiter, now: float) -> None:
        """Give a member its assignment; the leader's request brings the assignments of all members."""
        member = self.members.get(request.member_id)
        error = self._refuse(request.member_id, request.instance_id, request.generation)
        if not error and not request.agrees(self.protocol_type, self.protocol):
            error = Errors.INCONSISTENT_GROUP_PROTOCOL
        if not error and self.state is ClassicGroupState.COMPLETING and request.member_id == self.leader:
            error = self._budget.refuse(self.members.memory, self.members.growth_of_assignments(request.assignments))
        if error or member is None:
            self.waiters.answer(waiter, SyncResult(error))
            return
        act = self._step(Event.SYNC_LEADER if member.id == self.leader else Event.SYNC_FOLLOWER, now)
        if act.error:
            self.waiters.answer(waiter, SyncResult(act.error))
            return
        self._rebalance.unsynced.discard(member.id)
        member.expires = now + member.session_timeout
        self.waiters.add_sync(member, waiter)
        if act is Act.ASSIGN:
            self.members.assign(request.assignments)
        if act is not Act.DELAY_SYNC:
            self._answer_syncs(self.members if act is Act.ASSIGN else (member,), now)

    def _answer_syncs(self, members: Iterable[ClassicMember], now: float) -> None:
        for member in members:
            if member.syncing is not None:
                member.renew_session(now, self.deadline)
                self.waiters.answer_sync(member, SyncResult(NONE, self.protocol_type, self.protocol, member.assignment))
        if not self._rebalance.unsynced:
            self._rebalance.deadline = None

    def _refuse(self, member_id: str, instance_id: str | None, generation: int) -> Errors:
        if self.state is ClassicGroupState.DEAD:
            return TABLE[ClassicGroupState.DEAD, Event.HEARTBEAT].act.error
        if error := self.members.error_of(member_id, instance_id):
            return error
        return NONE if generation == self.generation else Errors.ILLEGAL_GENERATION

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> Errors:
        """Renew the session of a member; the error."""
        error = self._refuse(member_id, instance_id, generation)
        return error or self._renew_session(member_id, Event.HEARTBEAT, now)

    def commit(self, member_id: str, instance_id: str | None, generation: int, now: float) -> Errors:
        """The error if offsets of this member, or (generation -1) of a client that is no member, are not taken."""
        outside = generation < 0 and (self.state is ClassicGroupState.EMPTY or (not member_id and instance_id is None))
        if outside or self.state is ClassicGroupState.DEAD:
            return self._step(Event.COMMIT_OUTSIDE, now).error
        error = self._refuse(member_id, instance_id, generation)
        return error or self._renew_session(member_id, Event.COMMIT, now)

    def _renew_session(self, member_id: str, event: Event, now: float) -> Errors:
        member = self.members.get(member_id)
        assert member is not None
        member.expires = now + member.session_timeout
        return self._step(event, now).error

    def leave(self, member_id: str, instance_id: str | None, now: float) -> Errors:
        """A member leaves, or (no member id) the member of this instance id is removed; the error."""
        if self.state is ClassicGroupState.DEAD:
            return TABLE[ClassicGroupState.DEAD, Event.LOST].act.error
        if self.pending.pop(member_id, None) is not None:
            self._complete_join_if_all(now)
            return NONE
        if not member_id and (static := self.members.of_instance(instance_id)) is not None:
            member_id = static.id
        error = self.members.error_of(member_id, instance_id)
        if not error and (member := self.members.get(member_id)) is not None:
            self._remove(member, now)
        return error

    def withdraw(self, waiter: Waiter, now: float) -> None:
        """Answer this request now, as nobody waits for its answer any more. The client may ask again."""
        if (member := self.waiters.find(waiter)) is None:
            return
        self.waiters.refuse(member, Errors.COORDINATOR_LOAD_IN_PROGRESS)
        member.renew_session(now, self.deadline)
        if not member.known and member.instance_id is None:
            self._remove(member, now)  # its client does not know the member's id: it will come as a newcomer

    def delete(self, now: float) -> Errors:
        """Mark the group as deleted; returns the error if it has members."""
        return self._step(Event.DELETED, now).error

    def _remove(self, member: ClassicMember, now: float) -> None:
        self.waiters.refuse(member, Errors.UNKNOWN_MEMBER_ID)
        self.members.remove(member)
        self._rebalance.unsynced.discard(member.id)
        self._step(Event.LOST, now)
        self._complete_join_if_all(now)

    def tick(self, now: float) -> None:
        """Remove members whose session is over, and end the phase of a rebalance whose time is over."""
        for member_id in [member_id for member_id, until in self.pending.items() if until <= now]:
            del self.pending[member_id]
        for member in list(self.members):
            if not member.waits and member.expires <= now and member.id in self.members:
                self._remove(member, now)
        self._complete_join_if_all(now)
        if self._rebalance.is_over(now) and self.state is not ClassicGroupState.PREPARING:
            self._rebalance.deadline = None
            for member_id in list(self._rebalance.unsynced):
                if (unsynced := self.members.get(member_id)) is not None:
                    self._remove(unsynced, now)
        elif self._rebalance.is_over(now) and not self._rebalance.extend_joining(now, self._initial_delay):
            self._complete_join(now)
        times = [member.expires for member in self.members if not member.waits]
        times += self.pending.values()
        if self._rebalance.deadline is not None:
            times.append(self._rebalance.deadline)
        self.deadline.set(min(times, default=math.inf))

    def extend_deadlines(self, seconds: float) -> None:
        """Add so many seconds to all sessions and phases: the broker heard no member in that time."""
        self.deadline.extend(seconds)
        for member in self.members:
            member.expires += seconds
        for member_id in self.pending:
            self.pending[member_id] += seconds
        self._rebalance.extend_deadlines(seconds)

    def resume(self, now: float) -> None:
        """Begin again after the group was read from the store: each member has a full session, and the time to sync."""
        for member in self.members:
            member.known = True
            member.renew_session(now, self.deadline)
        if self.state is ClassicGroupState.COMPLETING:
            self.deadline.bring_forward(self._rebalance.begin_syncing(now, self.members, self.members))


def _tell_joined(group: ClassicGroup, member: ClassicMember) -> JoinResult:
    chosen, leader = group.protocol, group.leader or ""
    told = (
        tuple((one.id, one.instance_id, one.metadata(chosen)) for one in group.members) if member.id == leader else ()
    )
    return JoinResult(NONE, member.id, group.generation, group.protocol_type, chosen, leader, told)
