"""A group of the consumer protocol, its storage, its topics and its clients as a model: nothing happens but by a call.

Clients read whatever they are given at once, and stop reading what is taken from them as late as they like; nobody
may be given what another one still reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from group_model import make_config
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.machine import ConsumerGroupState
from korvet_fast.core.groups.consumer.members import (
    ConsumerMember,
    HeartbeatRequest,
    HeartbeatResult,
    Partitions,
    TopicIdPartition,
    TopicView,
)
from korvet_fast.core.groups.documents import unpack_group
from packed_group import pack_group

SESSION = 10.0
REBALANCE = 20.0
CONFIG = make_config(0.0, 5, SESSION)


class Shelf:
    """The topics. `fnmatch` patterns stand for regular expressions."""

    def __init__(self) -> None:
        self.version = 0
        self.topics: dict[str, TopicView] = {}
        self._made = 0

    def get(self, name: str) -> TopicView | None:
        return self.topics.get(name)

    def match(self, pattern: str) -> Iterable[str]:
        return [name for name in self.topics if fnmatchcase(name, pattern)]

    def put(self, name: str, partitions: int) -> None:
        """Make a topic, or have one of so many partitions."""
        self._made += 1
        known = self.topics.get(name)
        self.topics[name] = TopicView(known.id if known else b"%s-%d" % (name.encode(), self._made), partitions)
        self.version += 1

    def delete(self, name: str) -> None:
        del self.topics[name]
        self.version += 1

    @property
    def partitions(self) -> set[TopicIdPartition]:
        return {TopicIdPartition(view.id, index) for view in self.topics.values() for index in range(view.partitions)}


@dataclass(eq=False)
class Client:
    """A consumer. `reads`: what it reads now; `goal`: what it was told it may read."""

    member_id: str
    names: tuple[str, ...] = ("a",)
    regex: str = ""
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = 0
    reads: set[TopicIdPartition] = field(default_factory=set)
    goal: frozenset[TopicIdPartition] = frozenset()
    uncertain: bool = True  # it has to say everything
    said: set[TopicIdPartition] | None = None  # what it last said to have
    alive: bool = True
    fenced: bool = False
    waits: bool = False
    asked: int = 0  # requests: an answer that was lost is not taken for that to the next one
    error: str = ""

    def drop(self) -> None:
        """The member has nothing any more, and knows nothing of the group."""
        self.epoch, self.goal, self.uncertain, self.waits = 0, frozenset(), True, False
        self.reads.clear()


@dataclass
class World:
    """One group's whole world. `writes`: what is being stored, and the answers that wait for it."""

    now: float = 1000.0
    shelf: Shelf = field(default_factory=Shelf)
    group: ConsumerGroup = field(default_factory=lambda: ConsumerGroup(CONFIG.consumer))
    document: bytes | None = None
    writes: list[tuple[bytes | None, list[tuple[object, HeartbeatResult]]]] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    targets: dict[int, dict[str, Partitions]] = field(default_factory=dict)  # what was assigned with each epoch
    readers: dict[TopicIdPartition, Client] = field(default_factory=dict)  # who was given each partition last
    kept: int = 0  # the largest epoch stored
    told: dict[str, int] = field(default_factory=dict)  # the largest epoch told, by member id
    unsettled: set[str] = field(default_factory=set)  # ids not heard of since the storage forked

    # -- the coordinator's part --------------------------------------------------------------------------------------

    def settle(self) -> None:
        answers = [*self.group.answers]
        self.group.answers.clear()
        if self.group.changed:
            self.group.changed = False
            self.group.revision += 1
            self.writes.append((pack_group(self.group, 0), answers))
        elif self.writes:
            self.writes.append((None, answers))
        else:
            self.deliver(answers)
        self.check()

    def store_one(self) -> None:
        """The oldest write is durable, and what waited for it goes out."""
        document, answers = self.writes.pop(0)
        if document is not None:
            self.keep(document)
        self.deliver(answers)

    def store_all(self) -> None:
        while self.writes:
            self.store_one()

    def keep(self, document: bytes) -> None:
        self.document = document
        group = self.load()
        assert group.epoch >= self.kept, "an epoch went back"
        self.kept = group.epoch
        target = {one.instance_id or one.id: group.target[one.id] for one in group.members}
        known = self.targets.setdefault(group.target_epoch, target)
        same = all(known[who] == partitions for who, partitions in target.items() if who in known)
        assert same or group.epoch > group.target_epoch, "one epoch, two targets"

    def load(self) -> ConsumerGroup:
        if self.document is None:
            return ConsumerGroup(CONFIG.consumer)
        group = unpack_group(self.document, CONFIG)[0]
        assert isinstance(group, ConsumerGroup)
        return group

    def crash(self, *, applied: bool) -> None:
        """Another coordinator goes on with what is stored; `applied`: the write under way came through."""
        if applied and self.writes and self.writes[0][0] is not None:
            self.keep(self.writes[0][0])
        self.writes.clear()
        for client in self.clients:
            if client.waits:
                client.waits, client.uncertain = False, True
        self.group = self.load()
        self.group.resume(self.now)
        self.check()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.group.deadline.next()) is not None and due <= end:
            self.now = max(self.now, due)
            self.group.tick(self.now)
            self.settle()
        self.now = end

    # -- the clients' part -------------------------------------------------------------------------------------------

    def come(self, client: Client) -> Client:
        self.clients.append(client)
        self.heartbeat(client)
        return client

    def heartbeat(self, client: Client) -> None:
        """A heartbeat, as full as it has to be."""
        full = client.uncertain or client.epoch == 0
        report = full or client.said != client.reads
        client.said = set(client.reads)
        ask = HeartbeatRequest(
            client.member_id,
            client.epoch,
            client.instance_id,
            None,
            REBALANCE if full else None,
            client.names if full else None,
            client.regex if full else None,
            client.assignor if full else None,
            frozenset(client.reads) if report else None,
        )
        client.waits = True
        client.asked += 1
        self.unsettled.discard(client.member_id)
        self.group.heartbeat(ask, (client, client.asked), self.shelf, self.now)
        self.settle()

    def subscribe(self, client: Client, names: tuple[str, ...], regex: str = "") -> None:
        client.names, client.regex, client.uncertain = names, regex, True

    def obey(self, client: Client) -> None:
        """The member stops reading the partitions that it lost."""
        client.reads &= client.goal

    def lose_answer(self, client: Client) -> None:
        """Its connection breaks while it waits."""
        client.waits, client.uncertain = False, True

    def leave(self, client: Client, epoch: int) -> None:
        client.reads.clear()
        ask = HeartbeatRequest(client.member_id, epoch, client.instance_id)
        self.group.heartbeat(ask, None, self.shelf, self.now)
        client.alive = False
        self.settle()

    def deliver(self, answers: list[tuple[object, HeartbeatResult]]) -> None:
        for waiter, answer in answers:
            if not isinstance(waiter, tuple):
                continue
            client, number = waiter
            if client.waits and client.alive and client.asked == number:
                client.waits = False
                self.receive(client, answer)

    def receive(self, client: Client, answer: HeartbeatResult) -> None:
        client.error = answer.error
        if answer.error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"):
            client.drop()
        elif answer.error == "FENCED_INSTANCE_ID":
            client.drop()
            client.fenced = True
        elif not answer.error:
            assert answer.epoch <= self.kept, "an epoch was told before it was stored"
            assert answer.epoch >= self.told.get(client.member_id, 0), "an epoch went back"
            self.told[client.member_id] = client.epoch = answer.epoch
            client.uncertain = False
            if answer.assigned is not None:
                client.goal = answer.assigned
                self.readers |= dict.fromkeys(answer.assigned - client.reads, client)
                client.reads |= answer.assigned
            self.check()

    def commit(self, client: Client) -> str:
        return self.group.commit(client.member_id, client.epoch, knows=True)

    def commit_reads(self, client: Client) -> list[str]:
        """The member commits each partition that it reads, alone; no other member may have got it meanwhile."""
        names = {view.id: name for name, view in self.group.subscribed.topics.items()}
        errors = []
        for partition in client.reads:
            if (name := names.get(partition.topic_id)) is None:
                continue
            error = self.group.commit(client.member_id, client.epoch, [(name, partition.partition)], knows=True)
            errors.append(error)
            if not error and not self.unsettled:
                assert self.readers[partition] is client, "a commit over one of the partition's new owner"
        return errors

    # -- what must hold ----------------------------------------------------------------------------------------------

    def member(self, client: Client) -> ConsumerMember | None:
        """The member that a client is, if it is still one."""
        found = self.group.members.get(client.member_id)
        return found if found is not None and client.alive and not client.fenced else None

    def check(self) -> None:
        """Nobody reads what another member reads, and what the group believes of owners is what they have."""
        group = self.group
        assert group.epoch >= group.target_epoch
        assert (group.state is ConsumerGroupState.EMPTY) == (not group.members)
        held = [partition for one in group.members for partition in (*one.assigned, *one.revoking)]
        assert len(held) == len(set(held)), "one partition, two owners in the group"
        if self.unsettled:
            return
        reading: dict[TopicIdPartition, Client] = {}
        for client in self.clients:
            if (member := self.member(client)) is None or (client.epoch == 0 and not client.reads):
                continue
            for partition in client.reads:
                assert reading.setdefault(partition, client) is client, "one partition, two readers"
            if not client.waits and client.epoch == member.epoch:
                assert client.reads <= member.assigned | member.revoking, "it reads what the group knows nothing of"

    def living(self) -> list[Client]:
        return [one for one in self.clients if one.alive and not one.fenced]

    def live(self) -> None:
        """One turn of a client's loop."""
        for client in self.living():
            if not client.waits:
                self.obey(client)
                self.heartbeat(client)

    def rest(self) -> None:
        """Everybody does their part until nothing moves any more; it does so in time (G5)."""
        self.store_all()
        spent = 0.0
        while not self.rests():
            assert spent <= 3 * (SESSION + REBALANCE), "the group does not come to rest"
            self.live()
            self.store_all()
            self.advance(1.0)
            self.store_all()
            spent += 1.0

    def rests(self) -> bool:
        living = self.living()
        if not living:
            return True
        members = {one.id for one in self.group.members}
        refused = {"GROUP_MAX_SIZE_REACHED", "UNRELEASED_INSTANCE_ID"}
        inside = [one for one in living if one.error not in refused]
        return (
            self.group.state is ConsumerGroupState.STABLE
            and members == {one.member_id for one in inside}
            and all(one.epoch == self.group.epoch and one.reads == one.goal for one in inside)
            and not any(one.uncertain for one in inside)
            and self.current()
        )

    def current(self) -> bool:
        """Whether the group has seen the topics as they are."""
        wanted: dict[str, TopicView] = {}
        for one in self.group.members:
            names = {*one.names, *(self.shelf.match(one.regex) if one.regex else ())}
            wanted |= {name: view for name in names if (view := self.shelf.get(name)) is not None}
        return wanted == self.group.subscribed.topics

    def expected(self) -> set[TopicIdPartition]:
        """All partitions of the topics that members want to read."""
        return {
            TopicIdPartition(view.id, index)
            for view in self.group.subscribed.topics.values()
            for index in range(view.partitions)
        }
