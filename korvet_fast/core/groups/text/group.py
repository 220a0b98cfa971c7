"""One group of the text protocol: members, the generation that they belong to, and the partitions of each.

Pure, like `classic.group`: the caller of a method takes the `answers`, and if the group has `changed`, stores it before
the answers go out. The group reads one topic. Whenever members or partitions change, a new generation begins, and the
partitions are dealt out anew. The next request of each member is refused, so the member joins again.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from korvet_fast.core.groups.budget import MEMBER, memory_of_ids
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.config import TextConfig
from korvet_fast.core.groups.deadline import Deadline
from korvet_fast.core.groups.text.assignors import ASSIGNORS, DEFAULT
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import NONE, Errors

_LEFT_OUT: Final = 1000  # generations, when the last generation is not known


class TextMember:
    """A member. `expires`: when it is removed unless it is heard of; seconds of the monotonic clock."""

    __slots__ = ("assigned", "client_host", "expires", "id")

    def __init__(self, identity: str, client_host: str) -> None:
        self.id = identity
        self.client_host = client_host
        self.assigned = range(0)
        self.expires = 0.0


class TextJoin(NamedTuple):
    """A JOIN request. `partitions`: how many the topic has. `assignor` None: the one that the group has."""

    member_id: str
    topic: str
    partitions: int
    assignor: str | None
    client_host: str


class TextResult(NamedTuple):
    """An answer to a member: the error, and the reason where the error alone does not say it; or its assignment."""

    error: Errors
    generation: int = -1
    assigned: Iterable[int] = ()
    reason: str = ""

    def refuse(self, error: Errors) -> "TextResult":
        """The answer instead of this one, which is not given any more."""
        return TextResult(error)


class TextGroup:
    """All times are seconds of one monotonic clock. `members`: by their ids. `memory`: bytes, without the offsets.

    `partitions`: of the topic, as many as were dealt out.
    """

    protocol_type: Final = "text"

    def __init__(self, config: TextConfig, generation: int = 0) -> None:
        self.generation = max(generation, 0)
        self.topic = ""
        self.partitions = 0
        self.assignor = DEFAULT
        self.members: dict[str, TextMember] = {}
        self.answers: list[tuple[Waiter, TextResult]] = []
        self.changed = False
        self.is_dead = False
        self.memory = 0
        self.deadline = Deadline()
        self._config = config

    @property
    def state(self) -> ClassicGroupState:
        """The state that DescribeGroups and ListGroups name."""
        if self.is_dead:
            return ClassicGroupState.DEAD
        return ClassicGroupState.STABLE if self.members else ClassicGroupState.EMPTY

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and is not being deleted."""
        return not self.members and not self.is_dead

    @property
    def in_use(self) -> bool:
        """Whether the group has members."""
        return bool(self.members)

    # -- members -----------------------------------------------------------------------------------------------------

    def join(self, request: TextJoin, waiter: Waiter, now: float) -> None:
        """A member joins, or asks again for its assignment, which changes nothing."""
        self.answers.append((waiter, self._refuse(request) or self._add(request, now)))

    def _refuse(self, request: TextJoin) -> TextResult | None:
        if self.is_dead:
            return TextResult(Errors.COORDINATOR_NOT_AVAILABLE)
        others = len(self.members) - (request.member_id in self.members)
        if others and request.topic != self.topic:
            return TextResult(Errors.INVALID_REQUEST, reason="the members of this group read another topic")
        if others and request.assignor not in (None, self.assignor):
            return TextResult(Errors.INVALID_REQUEST, reason="the members of this group use the other assignor")
        if request.member_id not in self.members:
            if len(self.members) >= self._config.max_size:
                return TextResult(Errors.GROUP_MAX_SIZE_REACHED)
            error = self._config.budget.refuse(self.memory, _memory_of(request.member_id, request.client_host))
            if error:
                return TextResult(error)
        return None

    def _add(self, request: TextJoin, now: float) -> TextResult:
        member = self.members.get(request.member_id)
        assignor = request.assignor or (self.assignor if self.members else DEFAULT)
        before = (self.topic, self.partitions, self.assignor)
        wanted = (request.topic, request.partitions, assignor)
        self.topic, self.partitions, self.assignor = wanted
        joins = member is None
        if member is None:
            member = self.members[request.member_id] = TextMember(request.member_id, request.client_host)
        if joins or wanted != before:
            self._rebalance()
        self._renew(member, now)
        return TextResult(NONE, self.generation, member.assigned)

    def leave(self, member_id: str, topic: str, generation: int, waiter: Waiter) -> None:
        """A member leaves."""
        result = self._check(member_id, topic, generation)
        if not result.error:
            del self.members[member_id]
            self._rebalance()
        self.answers.append((waiter, result))

    def heartbeat(self, member_id: str, topic: str, generation: int, partitions: int, now: float) -> TextResult:
        """Renew the session of a member; its assignment. `partitions`: how many the topic has by now."""
        result = self._check(member_id, topic, generation)
        if result.error:
            return result
        if partitions != self.partitions:
            self.partitions = partitions
            self._rebalance()
            return TextResult(Errors.ILLEGAL_GENERATION)
        self._renew(self.members[member_id], now)
        return result

    def commit(self, member_id: str, generation: int, offsets: Iterable[tuple[str, int]], now: float) -> Errors:
        """Whether offsets of this member, or (generation -1, no members) of an administrator, are taken; the error."""
        if self.is_dead:
            return Errors.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and not self.members:
            return NONE
        result = self._check(member_id, self.topic, generation)
        if result.error:
            return result.error
        member = self.members[member_id]
        if any(topic != self.topic or index not in member.assigned for topic, index in offsets):
            return Errors.FENCED_MEMBER_EPOCH
        self._renew(member, now)
        return NONE

    def _check(self, member_id: str, topic: str, generation: int) -> TextResult:
        if self.is_dead:
            return TextResult(Errors.COORDINATOR_NOT_AVAILABLE)
        member = self.members.get(member_id)
        if member is None or topic != self.topic:
            return TextResult(Errors.UNKNOWN_MEMBER_ID)
        if generation != self.generation:
            return TextResult(Errors.ILLEGAL_GENERATION)
        return TextResult(NONE, generation, member.assigned)

    def _renew(self, member: TextMember, now: float) -> None:
        member.expires = now + self._config.session_timeout
        self.deadline.bring_forward(member.expires)

    def _rebalance(self) -> None:
        """Begin a new generation."""
        self.generation += 1
        self.changed = True
        self.deal()

    def deal(self) -> None:
        """Deal out the partitions by the order of member ids, and count the memory that members take."""
        ordered = sorted(self.members.values(), key=lambda member: member.id)
        if ordered:
            shares = ASSIGNORS[self.assignor](len(ordered), self.partitions)
            for member, share in zip(ordered, shares, strict=True):
                member.assigned = share
        self.memory = sum(_memory_of(member.id, member.client_host) for member in ordered)

    def delete(self, now: float) -> Errors:
        """Mark the group as deleted; returns the error if it has members."""
        if self.is_dead:
            return Errors.COORDINATOR_NOT_AVAILABLE
        self.is_dead = not self.members
        return NONE if self.is_dead else Errors.NON_EMPTY_GROUP

    # -- time --------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Remove members that were silent for too long."""
        silent = [member.id for member in self.members.values() if member.expires <= now]
        for identity in silent:
            del self.members[identity]
        if silent:
            self._rebalance()
        self.deadline.set(min((member.expires for member in self.members.values()), default=math.inf))

    def extend_deadlines(self, seconds: float) -> None:
        """Add so many seconds to all sessions: the broker heard no member in that time."""
        self.deadline.extend(seconds)
        for member in self.members.values():
            member.expires += seconds

    def bump_generation(self) -> None:
        """Skip generations that the store may have lost when its history broke: no generation is given out twice."""
        self.generation += _LEFT_OUT
        self.changed = True

    def resume(self, now: float) -> None:
        """Begin again after the group was read from the store: members have full sessions."""
        for member in self.members.values():
            self._renew(member, now)


def _memory_of(member_id: str, client_host: str) -> int:
    return MEMBER + memory_of_ids(member_id, client_host)
