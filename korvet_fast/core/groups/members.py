"""The members of a group: who they are, what they can do, and which of their requests wait for an answer."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Protocols: TypeAlias = tuple[
    tuple[str, bytes], ...
]  # names, the preferred first, and what the leader is told with each
Ticket: TypeAlias = object  # of a request: where its answer goes. The machine never looks inside.


class Join(NamedTuple):
    """A JoinGroup request; times in seconds. `fresh_id`: what its member is called if it has no id yet."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session: float
    rebalance: float
    fresh_id: str
    twice: bool  # a newcomer is given its id first and has to join again with it (version 4, KIP-394)
    skips: bool  # a leader that returns can be told to make no assignment (version 9, KIP-814)


class Sync(NamedTuple):
    """A SyncGroup request. `assignments`: by member id; only the leader's count."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None  # None before version 5
    protocol: str | None
    assignments: dict[str, bytes]


class Joined(NamedTuple):
    """The answer to a join. `members` (id, instance id, metadata) only for the leader."""

    fault: str = ""
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


class Synced(NamedTuple):
    """The answer to a sync."""

    fault: str = ""
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


def refuse_sync(fault: str) -> Synced:
    """The answer to a sync that has a fault."""
    # Clients do not know this one here. What they can do about it is to join again (so does Kafka).
    return Synced("REBALANCE_IN_PROGRESS" if fault == "COORDINATOR_LOAD_IN_PROGRESS" else fault)


class Member:
    """One member; static if it has an `instance_id` (KIP-345).

    Its session ends at `expires`, unless a request of it waits.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "expires",
        "id",
        "instance_id",
        "joining",
        "known",
        "protocols",
        "rebalance",
        "session",
        "syncing",
    )

    def __init__(self, identity: str, instance_id: str | None, *, known: bool) -> None:
        self.id = identity
        self.instance_id = instance_id
        self.client_id = self.client_host = ""
        self.protocols: Protocols = ()
        self.session = self.rebalance = self.expires = 0.0
        self.assignment = b""
        self.known = known  # whether its client has been told its id
        self.joining: Ticket | None = None
        self.syncing: Ticket | None = None

    @property
    def waits(self) -> bool:
        """Whether a request of it waits for its answer."""
        return self.joining is not None or self.syncing is not None

    def take(self, ask: Join, now: float) -> None:
        """It is now as it says in this join, but for its protocols: those are for `Members` to change."""
        self.client_id, self.client_host = ask.client_id, ask.client_host
        self.session, self.rebalance = ask.session, ask.rebalance
        self.expires = now + ask.session

    def metadata(self, protocol: str | None) -> bytes:
        """What it says under a protocol."""
        return dict(self.protocols).get(protocol or "", b"")


class Members:
    """By id, in the order of their first join."""

    def __init__(self) -> None:
        self._by_id: dict[str, Member] = {}
        self._by_instance: dict[str, str] = {}
        self._support: Counter[str] = Counter()  # how many have each protocol

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, identity: object) -> bool:
        return identity in self._by_id

    def get(self, identity: str | None) -> Member | None:
        return self._by_id.get(identity or "")

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The static member of this instance id."""
        return self.get(self._by_instance.get(instance_id)) if instance_id is not None else None

    def add(self, member: Member) -> None:
        self._by_id[member.id] = member
        if member.instance_id is not None:
            self._by_instance[member.instance_id] = member.id
        self._support.update(name for name, _ in member.protocols)

    def remove(self, member: Member) -> None:
        del self._by_id[member.id]
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]
        self._support.subtract(name for name, _ in member.protocols)

    def rename(self, member: Member, identity: str) -> None:
        """A static member goes on under another id, in its old place: of votes that tie, the earlier one counts."""
        assert member.instance_id is not None
        member.id = self._by_instance[member.instance_id] = identity
        self._by_id = {one.id: one for one in self}

    def change(self, member: Member, protocols: Protocols) -> None:
        """A member has these protocols from now on."""
        self._support.subtract(name for name, _ in member.protocols)
        member.protocols = protocols
        self._support.update(name for name, _ in protocols)

    def fault_of(self, identity: str, instance_id: str | None) -> str:
        """Why a request that names these two is refused; "" if it is not."""
        if instance_id is not None:
            static = self.of_instance(instance_id)
            if static is None:
                return "UNKNOWN_MEMBER_ID"
            if static.id != identity:
                return "FENCED_INSTANCE_ID"
        return "" if identity in self._by_id else "UNKNOWN_MEMBER_ID"

    def agree(self, protocols: Protocols, but: Member | None) -> bool:
        """Whether all of them, `but` one left out of account, have one of these protocols."""
        own = {name for name, _ in but.protocols} if but is not None else set()
        wanted = len(self) - (but is not None)
        return any(self._support[name] - (name in own) == wanted for name, _ in protocols)

    def choose(self) -> str:
        """The protocol with most votes of those that all have.

        Each member votes for the first it likes; of two with as many votes, the one voted for earlier.
        """
        every = len(self)
        votes = Counter(next(name for name, _ in one.protocols if self._support[name] == every) for one in self)
        return votes.most_common(1)[0][0]

    def longest_rebalance(self) -> float:
        """Seconds that the slowest member asks for, to join and to sync."""
        return max((member.rebalance for member in self), default=0.0)
