"""A group, its storage and its clients as a model: every message, timer and crash is a call, and nothing else happens.

Clients do what real ones do; what they believe to own is checked against everybody else.
"""

from dataclasses import dataclass, field

from korvet_fast.core.groups.budget import MEMBER, GroupBudget, memory_of, memory_of_ids
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.classic.requests import JoinRequest, JoinResult, SyncRequest, SyncResult
from korvet_fast.core.groups.config import ConsumerConfig, GroupConfig, TextConfig
from korvet_fast.core.groups.documents import unpack_group
from korvet_fast.errors import Errors
from packed_group import pack_group

PARTITIONS = range(6)
LONGEST = 60.0  # session or rebalance of a client
DELAY = 3.0
RANGE, BOTH, STICKY = ("range",), ("range", "sticky"), ("sticky", "range")


def make_config(delay: float, max_size: int, session: float = 45.0) -> GroupConfig:
    """Settings with a budget of their own. `session`: the timeout of the consumer protocol, in seconds."""
    budget = GroupBudget()
    return GroupConfig(budget, delay, max_size, ConsumerConfig(budget, session, max_size), TextConfig(budget))


CONFIG = make_config(DELAY, 5)


@dataclass
class Client:
    """A consumer. `waiter`: of the request it waits for; `owned`: what it was given in `generation`."""

    name: int
    instance_id: str | None
    protocols: tuple[str, ...]
    session: float = 10.0
    rebalance: float = 30.0
    member_id: str = ""
    generation: int = -1
    leader: bool = False
    others: tuple[str, ...] = ()  # whom the leader has to assign to
    synced: bool = False
    owned: frozenset[int] = frozenset()
    waiter: int | None = None
    fenced: bool = False
    alive: bool = True
    error: str = ""  # of its last request

    def reset(self, error: str) -> None:
        self.error = error
        self.synced, self.owned = False, frozenset()
        if error in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"):
            self.member_id, self.generation = "", -1
        self.fenced = self.fenced or error == "FENCED_INSTANCE_ID"


@dataclass
class Asked:
    """A request under way."""

    client: Client
    at: float
    answered: bool = False
    dropped: bool = False  # its connection is gone


@dataclass
class World:
    """One group's whole world."""

    now: float = 1000.0
    group: ClassicGroup = field(default_factory=lambda: ClassicGroup(CONFIG))
    document: bytes | None = None
    writes: list[tuple[bytes | None, list[tuple[object, JoinResult | SyncResult]]]] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    asked: dict[int, Asked] = field(default_factory=dict)
    owners: dict[tuple[int, int], str] = field(default_factory=dict)  # (generation, partition) -> who was given it
    leaders: dict[int, tuple[str, str | None]] = field(default_factory=dict)  # generation -> leader, protocol
    kept: int = 0  # the largest generation stored
    ids: int = 0

    # -- the coordinator's part --------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Take what the group did: answers wait behind the last write that is under way."""
        answers = [*self.group.answers]
        self.group.answers.clear()
        if self.group.changed:
            self.group.changed = False
            assert self.group.state in (ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING, ClassicGroupState.STABLE)
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

    def keep(self, document: bytes) -> None:
        self.document = document
        self.kept = max(self.kept, self.load().generation)

    def store_all(self) -> None:
        while self.writes:
            self.store_one()

    def load(self) -> ClassicGroup:
        assert self.document is not None
        return unpack_group(self.document, CONFIG)[0]

    def crash(self, *, applied: bool) -> None:
        """The coordinator is another one; `applied`: the write under way came through, though nobody was told."""
        if applied and self.writes and self.writes[0][0] is not None:
            self.keep(self.writes[0][0])
        self.writes.clear()
        for asked in self.asked.values():
            if not asked.answered:
                self.drop(asked)
        self.restart()

    def fail_write(self) -> None:
        """A write fails: whoever waits is told so, and the group goes on with what is stored."""
        refused = [waiter for _, answers in self.writes for waiter, _ in answers]
        self.writes.clear()
        self.group.waiters.refuse_all(self.group.members, "NOT_COORDINATOR")
        self.deliver(self.group.answers + [(waiter, JoinResult(Errors.NOT_COORDINATOR)) for waiter in refused])
        self.restart()

    def restart(self) -> None:
        self.group = self.load() if self.document is not None else ClassicGroup(CONFIG)
        self.group.resume(self.now)
        self.settle()

    def drop(self, asked: Asked) -> None:
        asked.dropped = True
        if asked.client.waiter is not None and self.asked[asked.client.waiter] is asked:
            asked.client.waiter = None

    def advance(self, seconds: float) -> None:
        """Time passes; timers go off when they are due."""
        end = self.now + seconds
        while (due := self.group.deadline.next()) is not None and due <= end:
            self.now = max(self.now, due)
            self.group.tick(self.now)
            self.settle()
        self.now = end

    # -- the clients' part -------------------------------------------------------------------------------------------

    def ask(self, client: Client) -> int:
        waiter = len(self.asked) + 1
        self.asked[waiter] = Asked(client, self.now)
        client.waiter = waiter
        return waiter

    def join(
        self, client: Client, *, requires_member_id: bool = True, supports_skipping_assignment: bool = True
    ) -> None:
        self.ids += 1
        protocols = tuple((name, b"%d" % client.name) for name in client.protocols)
        fresh = f"m{self.ids}"
        ask = JoinRequest(
            client.member_id,
            client.instance_id,
            "c",
            "h",
            "consumer",
            protocols,
            client.session,
            client.rebalance,
            fresh,
            requires_member_id,
            supports_skipping_assignment,
        )
        client.synced, client.owned = False, frozenset()
        self.group.join(ask, self.ask(client), self.now)
        self.settle()

    def sync(self, client: Client) -> None:
        assignments: dict[str, bytes] = {}
        if client.leader:
            count = len(client.others)
            assignments = {one: bytes(PARTITIONS)[turn::count] for turn, one in enumerate(client.others)}
        ask = SyncRequest(client.member_id, client.instance_id, client.generation, None, None, assignments)
        self.group.sync(ask, self.ask(client), self.now)
        self.settle()

    def heartbeat(self, client: Client) -> str:
        error = self.group.heartbeat(client.member_id, client.instance_id, client.generation, self.now)
        if error and error != "REBALANCE_IN_PROGRESS":
            client.reset(error)
        client.error = error
        self.settle()
        return error

    def commit(self, client: Client) -> str:
        error = self.group.commit(client.member_id, client.instance_id, client.generation, self.now)
        if not error:
            assert client.generation == self.group.generation
            assert client.member_id in self.group.members
        self.settle()
        return error

    def leave(self, client: Client) -> None:
        named = "" if client.instance_id else client.member_id
        self.group.leave(named, client.instance_id, self.now)
        client.reset("UNKNOWN_MEMBER_ID")
        self.settle()

    def kill(self, client: Client) -> None:
        """The process ends; its connection is closed."""
        client.alive = False
        client.reset("UNKNOWN_MEMBER_ID")
        for waiter, asked in self.asked.items():
            if asked.client is client and not asked.answered:
                asked.dropped = True
                self.group.withdraw(waiter, self.now)
        client.waiter = None
        self.settle()

    def deliver(self, answers: list[tuple[object, JoinResult | SyncResult]]) -> None:
        for waiter, answer in answers:
            assert isinstance(waiter, int)
            asked = self.asked[waiter]
            assert not asked.answered, "two answers to one request"
            asked.answered = True
            if not asked.dropped and asked.client.waiter == waiter:
                asked.client.waiter = None
                self.receive(asked.client, answer)

    def receive(self, client: Client, answer: JoinResult | SyncResult) -> None:
        client.error = answer.error
        if isinstance(answer, SyncResult):
            if answer.error:
                client.reset(answer.error)
            else:
                self.own(client, frozenset(answer.assignment))
        elif answer.error == "MEMBER_ID_REQUIRED":
            client.member_id = answer.member_id
        elif answer.error:
            client.reset(answer.error)
        else:
            client.member_id, client.generation = answer.member_id, answer.generation
            client.leader = answer.leader == answer.member_id and not answer.skip_assignment
            client.others = tuple(identity for identity, _, _ in answer.members)
            self.learn(client, answer)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def learn(self, client: Client, answer: JoinResult) -> None:
        assert answer.generation <= self.kept, "a generation was told before it was stored"
        if client.leader:
            assert self.leaders.setdefault(answer.generation, (client.member_id, answer.protocol)) == (
                client.member_id,
                answer.protocol,
            ), "two leaders of one generation"

    def own(self, client: Client, partitions: frozenset[int]) -> None:
        client.synced, client.owned = True, partitions
        who = client.instance_id or client.member_id
        for partition in partitions:
            assert self.owners.setdefault((client.generation, partition), who) == who, "one partition, two owners"

    def check(self) -> None:
        group = self.group
        assert group.generation >= self.kept
        assert (group.state is ClassicGroupState.EMPTY) == (not group.members)
        self.check_kept()
        waiting = {waiter for one in group.members for waiter in (one.joining, one.syncing) if waiter is not None}
        under_way = {waiter for _, answers in self.writes for waiter, _ in answers}
        for waiter, asked in self.asked.items():
            if not asked.answered and not asked.dropped:
                assert waiter in waiting | under_way, "nobody will answer this request"
                assert waiter in under_way or self.now - asked.at <= LONGEST, "waits for too long"

    def check_kept(self) -> None:
        """The values that a group keeps, to save searching with each request, are right."""
        group = self.group
        assert group.memory == sum(
            MEMBER
            + memory_of_ids(one.id, one.instance_id, one.client_id, one.client_host)
            + memory_of(sum(len(name) + len(said) for name, said in one.protocols))
            + memory_of(len(one.assignment))
            for one in group.members
        )
        times = [one.expires for one in group.members if not one.waits]
        times += group.pending.values()
        if times:
            due = group.deadline.next()
            assert due is not None
            assert due <= min(times)


def gather(*clients: Client) -> World:
    """A world whose group has formed with these clients, all synced."""
    world = World()
    rally(world, *clients)
    return world


def rally(world: World, *clients: Client) -> None:
    """These join, and sync."""
    world.clients += [one for one in clients if one not in world.clients]
    for client in sorted(clients, key=lambda one: one.generation):  # newcomers first: the rest can wait for them
        world.join(client)
        if client.error == "MEMBER_ID_REQUIRED":
            world.join(client)
    world.advance(2 * DELAY)
    world.store_all()
    for client in sorted(clients, key=lambda one: one.leader):
        world.sync(client)
    world.store_all()
    assert all(one.synced for one in clients), [one.error for one in clients]


def people(number: int, *, static: bool = False, protocols: tuple[str, ...] = BOTH) -> list[Client]:
    return [Client(each, f"static-{each}" if static else None, protocols) for each in range(number)]
