"""The members of a classic group: their ids, their protocols, and their requests that wait."""

from collections import Counter
from collections.abc import Iterator, Mapping

from korvet_fast.core.groups.budget import FEW, MEMBER, PROTOCOL, memory_of, memory_of_ids, size_of
from korvet_fast.core.groups.classic.requests import JoinRequest, Protocols
from korvet_fast.core.groups.deadline import Deadline
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import NONE, Errors


def memory_of_protocols(protocols: Protocols) -> int:
    """Bytes of memory that the protocols of a member take."""
    size = 0
    for name, metadata in protocols:
        size += size_of(name) + len(metadata)
    return memory_of(size) + PROTOCOL * max(0, len(protocols) - FEW)


class ClassicMember:
    """One member; static if it has an `instance_id` (KIP-345). `joining`, `syncing`: its requests that wait.

    The member's session ends at `expires`, unless a request of the member waits. `known`: its client was told its id.
    `memory`: bytes that the member takes.
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
        "memory",
        "protocols",
        "rebalance_timeout",
        "session_timeout",
        "syncing",
    )

    def __init__(self, identity: str, instance_id: str | None, *, known: bool) -> None:
        self.id = identity
        self.instance_id = instance_id
        self.client_id = self.client_host = ""
        self.protocols: Protocols = ()
        self.session_timeout = self.rebalance_timeout = self.expires = 0.0
        self.assignment = b""
        self.memory = MEMBER
        self.known = known
        self.joining: Waiter | None = None
        self.syncing: Waiter | None = None

    @property
    def waits(self) -> bool:
        """Whether a request of the member waits for its answer."""
        return self.joining is not None or self.syncing is not None

    def update(self, request: JoinRequest, now: float) -> None:
        """Take the values of this join, except the protocols: `ClassicMembers.change` takes those."""
        self.client_id, self.client_host = request.client_id, request.client_host
        self.session_timeout, self.rebalance_timeout = request.session_timeout, request.rebalance_timeout
        self.expires = now + request.session_timeout

    def renew_session(self, now: float, deadline: Deadline) -> None:
        """Begin the session anew; `deadline`: the group's."""
        self.expires = now + self.session_timeout
        deadline.bring_forward(self.expires)

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for a protocol."""
        return dict(self.protocols).get(protocol or "", b"")


class ClassicMembers:
    """The members by id, in the order of their first join. `memory`: bytes of memory that all members take."""

    def __init__(self) -> None:
        self.memory = 0
        self._by_id: dict[str, ClassicMember] = {}
        self._by_instance: dict[str, str] = {}
        self._support: Counter[str] = Counter()  # how many members support each protocol

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, identity: object) -> bool:
        return identity in self._by_id

    def get(self, identity: str | None) -> ClassicMember | None:
        return self._by_id.get(identity or "")

    def of_instance(self, instance_id: str | None) -> ClassicMember | None:
        """The static member of this instance id."""
        return self.get(self._by_instance.get(instance_id)) if instance_id is not None else None

    def add(self, member: ClassicMember) -> None:
        self._by_id[member.id] = member
        if member.instance_id is not None:
            self._by_instance[member.instance_id] = member.id
        self._support.update(name for name, _ in member.protocols)
        self._count_memory(member, 0)

    def remove(self, member: ClassicMember) -> None:
        del self._by_id[member.id]
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]
        self._support.subtract(name for name, _ in member.protocols)
        self.memory -= member.memory

    def rename(self, member: ClassicMember, identity: str) -> None:
        """Give a static member another id. It keeps its place in the order, which decides votes that tie."""
        assert member.instance_id is not None
        member.id = self._by_instance[member.instance_id] = identity
        self._by_id = {one.id: one for one in self}

    def change(self, member: ClassicMember, protocols: Protocols) -> None:
        """Set the protocols of a member, and count its memory anew: its ids may have changed too."""
        if protocols != member.protocols:
            self._support.subtract(name for name, _ in member.protocols)
            member.protocols = protocols
            self._support.update(name for name, _ in protocols)
        self._count_memory(member, member.memory)

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """Give every member its assignment; a member that is not named has none."""
        for member in self:
            member.assignment = assignments.get(member.id, b"")
            self._count_memory(member, member.memory)

    def _count_memory(self, member: ClassicMember, before: int) -> None:
        member.memory = (
            MEMBER
            + memory_of_ids(member.id, member.instance_id, member.client_id, member.client_host)
            + memory_of_protocols(member.protocols)
            + memory_of(len(member.assignment))
        )
        self.memory += member.memory - before

    def error_of(self, identity: str, instance_id: str | None) -> Errors:
        """The error of a request that names this member id and instance id; `NONE` if they belong together."""
        if instance_id is not None:
            static = self.of_instance(instance_id)
            if static is None:
                return Errors.UNKNOWN_MEMBER_ID
            if static.id != identity:
                return Errors.FENCED_INSTANCE_ID
        return NONE if identity in self._by_id else Errors.UNKNOWN_MEMBER_ID

    def growth(self, member: ClassicMember | None, request: JoinRequest) -> int:
        """Bytes of memory that this join adds. `member` None: a newcomer."""
        if member is not None and member.protocols == request.protocols and member.client_id == request.client_id:
            return 0
        who = member or request  # a member may come back from a host with a longer address
        identity = request.member_id or request.new_member_id
        more = MEMBER + memory_of_ids(identity, who.instance_id, request.client_id, who.client_host)
        more += memory_of_protocols(request.protocols)
        return more if member is None else more + memory_of(len(member.assignment)) - member.memory

    def growth_of_assignments(self, assignments: Mapping[str, bytes]) -> int:
        """Bytes of memory that these assignments add."""
        size = 0
        for member in self:
            size += len(assignments.get(member.id, b"")) - len(member.assignment)
        return memory_of(size)

    def agree(self, protocols: Protocols, but: ClassicMember | None) -> bool:
        """Whether all members, except `but`, support one of these protocols."""
        own = {name for name, _ in but.protocols} if but is not None else set()
        wanted = len(self) - (but is not None)
        return any(self._support[name] - (name in own) == wanted for name, _ in protocols)

    def choose_protocol(self) -> str:
        """The protocol with the most votes, of those that all members support.

        Each member votes for the first of its protocols that all members support. If votes tie, the protocol with the
        earliest vote is chosen.
        """
        every = len(self)
        votes = Counter(next(name for name, _ in one.protocols if self._support[name] == every) for one in self)
        return votes.most_common(1)[0][0]

    def longest_rebalance_timeout(self) -> float:
        """Seconds within which all members can join, and can sync."""
        return max((member.rebalance_timeout for member in self), default=0.0)
