"""The requests of members of the classic protocol, and their answers."""

from typing import NamedTuple, TypeAlias

from korvet_fast.core.groups.budget import LONGEST, MOST_PROTOCOLS
from korvet_fast.errors import NONE, Errors

# Name and metadata of each protocol that a member supports, the preferred protocol first. The leader gets the metadata
# of the chosen protocol.
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]


class JoinRequest(NamedTuple):
    """A JoinGroup request; times in seconds. `new_member_id`: the id that a client without one gets.

    `requires_member_id`: a newcomer first gets its id, and joins again with it (version 4, KIP-394).
    `supports_skipping_assignment`: a leader that returns can be told to make no assignment (version 9, KIP-814).
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout: float
    rebalance_timeout: float
    new_member_id: str
    requires_member_id: bool
    supports_skipping_assignment: bool

    def find_error(self) -> Errors:
        """The error of a name that is too long, or of too many protocols; "" if there is none."""
        if self.instance_id is not None and len(self.instance_id) > LONGEST:
            return Errors.INVALID_REQUEST
        if len(self.protocol_type) > LONGEST or len(self.protocols) > MOST_PROTOCOLS:
            return Errors.INCONSISTENT_GROUP_PROTOCOL
        for name, _ in self.protocols:
            if len(name) > LONGEST:
                return Errors.INCONSISTENT_GROUP_PROTOCOL
        return NONE


class SyncRequest(NamedTuple):
    """A SyncGroup request. `assignments`: by member id; only the leader's are used."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None  # None before version 5
    protocol: str | None
    assignments: dict[str, bytes]

    def agrees(self, protocol_type: str | None, protocol: str | None) -> bool:
        """Whether the request names the group's protocol, or none."""
        return self.protocol_type in (None, protocol_type) and self.protocol in (None, protocol)


class JoinResult(NamedTuple):
    """The answer to a join. `members` (id, instance id, metadata): empty but for the leader."""

    error: Errors = NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False

    def refuse(self, error: Errors) -> "JoinResult":
        """The answer instead of this one, which is not given any more."""
        return JoinResult(error, self.member_id)

    def keep_assignment(self, former_id: str, *, can_skip: bool) -> "JoinResult":
        """The answer to a leader that returns under another id while the assignment stays (KIP-814).

        A client that does not know `skip_assignment` is told that it is not the leader.
        """
        return self._replace(skip_assignment=True) if can_skip else self._replace(leader=former_id, members=())


class SyncResult(NamedTuple):
    """The answer to a sync."""

    error: Errors = NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""

    def refuse(self, error: Errors) -> "SyncResult":
        """The answer instead of this one, which is not given any more."""
        return refuse_sync(error)


def refuse_sync(error: Errors) -> SyncResult:
    """The answer to a sync that is refused with this error."""
    # Clients do not expect COORDINATOR_LOAD_IN_PROGRESS here; they can only join again. Kafka answers the same.
    return SyncResult(Errors.REBALANCE_IN_PROGRESS if error == Errors.COORDINATOR_LOAD_IN_PROGRESS else error)
