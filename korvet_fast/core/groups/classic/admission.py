"""Admission of joins: a join is refused, or becomes an event of the group."""

from korvet_fast.core.groups.classic.machine import TABLE, ClassicGroupState, Event
from korvet_fast.core.groups.classic.members import ClassicMember, ClassicMembers
from korvet_fast.core.groups.classic.requests import JoinRequest
from korvet_fast.core.groups.classic.waiters import Waiters
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.errors import NONE, Errors

PENDING = 10_000  # member ids given out that nobody has joined with yet; more than that are a mistake, or an attack


class Admission:
    """Says who may join one group."""

    __slots__ = ("_config", "_members", "_pending", "_waiters")

    def __init__(
        self, config: GroupConfig, members: ClassicMembers, pending: dict[str, float], waiters: Waiters
    ) -> None:
        """`pending`: the member ids that were given out for a second join."""
        self._config = config
        self._members = members
        self._pending = pending
        self._waiters = waiters

    def refuse_join(
        self, state: ClassicGroupState, protocol_type: str | None, request: JoinRequest, member: ClassicMember | None
    ) -> Errors:
        """The error if a join is refused in a group of this state and protocol type; `NONE` if it is not.

        `member`: the member that joins; None: a newcomer.
        """
        if state is ClassicGroupState.DEAD:
            return TABLE[ClassicGroupState.DEAD, Event.JOIN_NEW].act.error
        # Only newcomers without an instance id are given a member id: with one, two members could have one instance.
        invited = not request.member_id or (request.member_id in self._pending and request.instance_id is None)
        error = NONE if invited else self._members.error_of(request.member_id, request.instance_id)
        # A static member that was replaced must learn so in a full group too: otherwise it would ask for ever.
        if error != Errors.FENCED_INSTANCE_ID and not self._has_room(state, request, member):
            return Errors.GROUP_MAX_SIZE_REACHED
        if error:
            return error
        fits = request.protocol_type and (not self._members or request.protocol_type == protocol_type)
        if not (fits and self._members.agree(request.protocols, member)):
            return Errors.INCONSISTENT_GROUP_PROTOCOL
        return self._config.budget.refuse(self._members.memory, self._members.growth(member, request))

    def _has_room(self, state: ClassicGroupState, request: JoinRequest, member: ClassicMember | None) -> bool:
        if state is ClassicGroupState.PREPARING:
            # Only members that have joined count: if a group has become too large, the last ones to join are refused.
            joined = self._waiters.joins
            known = member is not None and member.joining is not None
        else:
            joined, known = len(self._members), member is not None
        invited = bool(request.member_id) or len(self._pending) < PENDING
        return known or (joined < self._config.max_size and invited)


def classify_join(member: ClassicMember, request: JoinRequest, leader: str | None) -> Event:
    """The event that the join of a member is for its group."""
    if member.protocols != request.protocols:
        return Event.JOIN_CHANGED
    return Event.JOIN_LEADER if member.id == leader else Event.JOIN_FOLLOWER
