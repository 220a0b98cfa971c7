"""The members of a consumer group: their ids, subscriptions and partitions; their heartbeats and the answers."""

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple, Protocol, TypeAlias

from korvet_fast.core.groups.budget import NAME, memory_of, memory_of_ids, size_of
from korvet_fast.core.groups.consumer.machine import MemberState
from korvet_fast.core.groups.consumer.partition_set import Partitions, TopicIdPartition
from korvet_fast.errors import NONE, Errors

LEAVES = -1  # the epoch of a member that leaves for good
PAUSES = -2  # the epoch of a static member that leaves and will come back


Subscription: TypeAlias = tuple[tuple[str, ...], str]  # names of topics, and a regular expression ("" is none)


class HeartbeatRequest(NamedTuple):
    """A ConsumerGroupHeartbeat; `rebalance_timeout` in seconds. None: the value is as before.

    `names`, `regex`: the topics that the member subscribes to. `owned`: the partitions that it has. `new_member_id`:
    the id that a client without one gets.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout: float | None = None
    names: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Set[TopicIdPartition] | None = None
    client_id: str = ""
    client_host: str = ""
    new_member_id: str = ""

    @property
    def is_full(self) -> bool:
        """Whether the request has all values: then its client does not know the broker's state."""
        wants = self.names is not None or self.regex is not None
        return self.epoch == 0 or (self.rebalance_timeout is not None and wants and self.owned is not None)


def memory_of_subscription(names: tuple[str, ...], regex: str) -> int:
    """Bytes of memory that a subscription takes."""
    return memory_of(sum(map(size_of, names)) + size_of(regex)) + NAME * len(names)


class HeartbeatResult(NamedTuple):
    """The answer. `assigned`: the partitions that the member may use now; None if they are as before."""

    error: Errors = NONE
    member_id: str = ""
    epoch: int = 0
    assigned: Partitions | None = None

    def refuse(self, error: Errors) -> "HeartbeatResult":
        """The answer instead of this one, which is not given any more."""
        return HeartbeatResult(error)


class TopicView(NamedTuple):
    """A topic as a group sees it: its id, and how many partitions it has."""

    id: bytes
    partitions: int


class Catalogue(Protocol):
    """All topics. `version` grows with every change of them."""

    @property
    def version(self) -> int: ...

    def get(self, name: str) -> TopicView | None:
        """A topic; None if none has this name."""

    def match(self, pattern: str) -> Iterable[str]:
        """The names of the topics that a regular expression, which is valid, fits as a whole."""


class ConsumerMember:
    """One member. `assigned`: the partitions it may use; `revoking`: those it has to give up, and may still use.

    `assignment_epochs`: by the member's epoch, the partitions that it got then and has still (KIP-1251); not stored:
    after a restart of the broker only commits in the present epoch are taken. `subscription_memory`, `ids_memory`:
    bytes of memory.

    The member's session ends at `expires`. Partitions have to be given up by `revoke_by`. `away`: a static member that
    said it would come back.
    """

    __slots__ = (
        "assigned",
        "assignment_epochs",
        "assignor",
        "away",
        "client_host",
        "client_id",
        "epoch",
        "expires",
        "id",
        "ids_memory",
        "instance_id",
        "names",
        "previous_epoch",
        "rack_id",
        "rebalance_timeout",
        "regex",
        "revoke_by",
        "revoking",
        "state",
        "subscription_memory",
    )

    def __init__(self, identity: str) -> None:
        self.id = identity
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = self.client_host = ""
        self.names: tuple[str, ...] = ()
        self.regex = ""
        self.subscription_memory = self.ids_memory = 0
        self.assignor: str | None = None
        self.rebalance_timeout = self.expires = 0.0
        self.revoke_by: float | None = None
        self.epoch = self.previous_epoch = 0
        self.state = MemberState.STABLE
        self.assigned = self.revoking = Partitions()
        self.assignment_epochs: dict[int, Partitions] = {}
        self.away = False

    @property
    def subscription(self) -> Subscription:
        """The topics that the member reads."""
        return self.names, self.regex

    def subscribe(self, names: tuple[str, ...], regex: str) -> None:
        """Set the topics that the member reads."""
        self.names, self.regex = names, regex
        self.subscription_memory = memory_of_subscription(names, regex)

    def count_ids(self) -> None:
        """Count the bytes of memory that the member's ids take."""
        self.ids_memory = memory_of_ids(self.id, self.instance_id, self.rack_id, self.client_id, self.client_host)

    @property
    def profile(self) -> tuple[object, ...]:
        """The values that the member sent about itself."""
        told = (self.rack_id, self.client_id, self.client_host, self.assignor, self.rebalance_timeout, self.away)
        return (*self.subscription, *told)

    @property
    def progress(self) -> tuple[object, ...]:
        """The member's progress towards the target assignment."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking

    @property
    def deadline(self) -> float:
        """The time to remove the member, unless it sends a heartbeat before, or gives up its `revoking` partitions."""
        return self.expires if self.revoke_by is None else min(self.expires, self.revoke_by)

    def changes_ids(self, request: HeartbeatRequest) -> bool:
        """Whether this heartbeat has other ids than the member had before."""
        return self.client_id != request.client_id or request.rack_id not in (None, self.rack_id)

    def update(self, request: HeartbeatRequest) -> None:
        """Take the values of this heartbeat."""
        self.away = False
        if request.epoch == 0 or self.changes_ids(request) or self.client_host != request.client_host:
            self.client_id, self.client_host = request.client_id, request.client_host
            self.rack_id = self.rack_id if request.rack_id is None else request.rack_id
            self.count_ids()
        self.rebalance_timeout = (
            self.rebalance_timeout if request.rebalance_timeout is None else request.rebalance_timeout
        )
        self.assignor = self.assignor if request.assignor is None else request.assignor
        if request.names is not None or request.regex is not None:
            names = self.names if request.names is None else tuple(sorted(set(request.names)))
            self.subscribe(names, self.regex if request.regex is None else request.regex)

    def hold(self, assigned: Partitions, revoking: Partitions) -> None:
        """Set the member's partitions. New ones are held from the present epoch on, the others as long as before."""
        new, since = assigned | revoking, {}
        for epoch, partitions in self.assignment_epochs.items():
            if kept := partitions & new:
                since[epoch] = kept
                new = new - kept
        if new:
            since[self.epoch] = since.get(self.epoch, Partitions()) | new
        self.assignment_epochs = since
        self.assigned, self.revoking = assigned, revoking

    def held_since(self, partition: TopicIdPartition) -> int:
        """The member's epoch when it got this partition; the present one for those that it does not have."""
        return next((epoch for epoch, held in self.assignment_epochs.items() if partition in held), self.epoch)

    def advance(self, epoch: int) -> None:
        """Set the member's epoch. The previous epoch still counts, as the answer may be lost."""
        if epoch != self.epoch:
            self.previous_epoch, self.epoch = self.epoch, epoch


class ConsumerMembers:
    """The members by id, in the order of their first join."""

    def __init__(self) -> None:
        self._by_id: dict[str, ConsumerMember] = {}
        self._by_instance: dict[str, ConsumerMember] = {}

    def __iter__(self) -> Iterator[ConsumerMember]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, identity: str) -> ConsumerMember | None:
        return self._by_id.get(identity)

    def of_instance(self, instance_id: str | None) -> ConsumerMember | None:
        """The static member of this instance id."""
        return self._by_instance.get(instance_id) if instance_id is not None else None

    def add(self, member: ConsumerMember) -> None:
        self._by_id[member.id] = member
        if member.instance_id is not None:
            self._by_instance[member.instance_id] = member

    def remove(self, member: ConsumerMember) -> None:
        del self._by_id[member.id]
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]

    def set_instance(self, member: ConsumerMember, instance_id: str | None) -> None:
        """Set the instance id of a member that had none, or another one."""
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]
        member.instance_id = instance_id
        self.add(member)

    def rename(self, member: ConsumerMember, identity: str) -> None:
        """Give a static member another member id. It keeps its place in the order."""
        member.id = identity
        self._by_id = {one.id: one for one in self}
