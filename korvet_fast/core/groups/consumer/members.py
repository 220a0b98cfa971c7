"""The members of a consumer group: who they are, what they want, what they have; and what they say and are told."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from korvet_fast.core.groups.consumer.machine import Stage

LEAVES = -1  # as an epoch: the member goes for good
PAUSES = -2  # a static member goes, and comes back


class Part(NamedTuple):
    """A partition of a topic, by the topic's id: a topic of the same name that is made later is another one."""

    topic: bytes
    partition: int


Parts: TypeAlias = frozenset[Part]


class Beat(NamedTuple):
    """A heartbeat; `rebalance` in seconds. None: as said before. `fresh_id`: its id if it has none yet."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance: float | None = None
    names: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Parts | None = None
    client_id: str = ""
    client_host: str = ""
    fresh_id: str = ""

    @property
    def full(self) -> bool:
        """Whether it says everything: its client does not know what we know."""
        wants = self.names is not None or self.regex is not None
        return self.epoch == 0 or (self.rebalance is not None and wants and self.owned is not None)


class Beaten(NamedTuple):
    """The answer. `assigned`: what the member may use now, and nothing else; None if that is as it was."""

    fault: str = ""
    member_id: str = ""
    epoch: int = 0
    assigned: Parts | None = None


class TopicView(NamedTuple):
    """What a group has to know of a topic."""

    id: bytes
    partitions: int


class Catalogue(Protocol):
    """The topics there are. `version` grows with every change of them."""

    @property
    def version(self) -> int: ...

    def get(self, name: str) -> TopicView | None:
        """A topic; None if there is none of this name."""

    def match(self, pattern: str) -> Iterable[str]:
        """The names of the topics that a regular expression fits as a whole. It is a valid one."""


class ConsumerMember:
    """One member. `assigned`: what it may use; `revoking`: what it was asked to give up and may still use.

    Its session ends at `expires`; it has to have given up what it was asked to by `revoke_by`. `away`: a static member
    that said it would come back.
    """

    __slots__ = (
        "assigned",
        "assignor",
        "away",
        "client_host",
        "client_id",
        "epoch",
        "expires",
        "id",
        "instance_id",
        "names",
        "previous_epoch",
        "rack_id",
        "rebalance",
        "regex",
        "revoke_by",
        "revoking",
        "stage",
    )

    def __init__(self, identity: str) -> None:
        self.id = identity
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = self.client_host = ""
        self.names: tuple[str, ...] = ()
        self.regex = ""
        self.assignor: str | None = None
        self.rebalance = self.expires = 0.0
        self.revoke_by: float | None = None
        self.epoch = self.previous_epoch = 0
        self.stage = Stage.STABLE
        self.assigned: Parts = frozenset()
        self.revoking: Parts = frozenset()
        self.away = False

    @property
    def subscription(self) -> tuple[tuple[str, ...], str]:
        """What it wants to read: names, and a regular expression ("" is none)."""
        return self.names, self.regex

    @property
    def profile(self) -> tuple[object, ...]:
        """What it said of itself."""
        told = (self.rack_id, self.client_id, self.client_host, self.assignor, self.rebalance, self.away)
        return (*self.subscription, *told)

    @property
    def progress(self) -> tuple[object, ...]:
        """Where it is."""
        return self.epoch, self.previous_epoch, self.stage, self.assigned, self.revoking

    def take(self, ask: Beat) -> None:
        """It is as it says in this heartbeat."""
        self.away = False
        self.client_id, self.client_host = ask.client_id, ask.client_host
        self.rack_id = self.rack_id if ask.rack_id is None else ask.rack_id
        self.rebalance = self.rebalance if ask.rebalance is None else ask.rebalance
        self.assignor = self.assignor if ask.assignor is None else ask.assignor
        self.names = self.names if ask.names is None else tuple(sorted(set(ask.names)))
        self.regex = self.regex if ask.regex is None else ask.regex

    def advance(self, epoch: int) -> None:
        """It has this epoch now; the one before still counts, as the answer may be lost."""
        if epoch != self.epoch:
            self.previous_epoch, self.epoch = self.epoch, epoch


class ConsumerMembers:
    """By id, in the order of their first join."""

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

    def name(self, member: ConsumerMember, instance_id: str | None) -> None:
        """A member is a static one from now on, or another one."""
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]
        member.instance_id = instance_id
        self.add(member)

    def rename(self, member: ConsumerMember, identity: str) -> None:
        """A static member goes on under another id, in its old place."""
        member.id = identity
        self._by_id = {one.id: one for one in self}
