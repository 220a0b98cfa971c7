"""A group, its storage and its clients as a model: every message, timer and crash is a call, and nothing else happens.

Clients do what real ones do; what they believe to own is checked against everybody else.
"""

from dataclasses import dataclass, field

from korvet_fast.core.groups.documents import pack_group, unpack_group
from korvet_fast.core.groups.group import Group, Rules
from korvet_fast.core.groups.machine import State
from korvet_fast.core.groups.members import Join, Joined, Sync, Synced

PARTITIONS = range(6)
LONGEST = 60.0  # session or rebalance of a client
DELAY = 3.0
RULES = Rules(DELAY, 5)


@dataclass
class Client:
    """A consumer. `ticket`: of the request it waits for; `owned`: what it was given in `generation`."""

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
    ticket: int | None = None
    fenced: bool = False
    alive: bool = True
    fault: str = ""  # of its last request

    def reset(self, fault: str) -> None:
        self.fault = fault
        self.synced, self.owned = False, frozenset()
        if fault in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"):
            self.member_id, self.generation = "", -1
        self.fenced = self.fenced or fault == "FENCED_INSTANCE_ID"


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
    group: Group = field(default_factory=lambda: Group(RULES))
    document: bytes | None = None
    writes: list[tuple[bytes | None, list[tuple[object, Joined | Synced]]]] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    asked: dict[int, Asked] = field(default_factory=dict)
    owners: dict[tuple[int, int], str] = field(default_factory=dict)  # (generation, partition) -> who was given it
    leaders: dict[int, tuple[str, str | None]] = field(default_factory=dict)  # generation -> leader, protocol
    kept: int = 0  # the largest generation stored
    ids: int = 0

    # -- the coordinator's part --------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Take what the group did: answers wait behind the last write that is under way."""
        answers, self.group.answers = self.group.answers, []
        if self.group.changed:
            self.group.changed = False
            assert self.group.state in (State.EMPTY, State.COMPLETING, State.STABLE)
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

    def load(self) -> Group:
        assert self.document is not None
        return unpack_group(self.document, RULES)[0]

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
        refused = [ticket for _, answers in self.writes for ticket, _ in answers]
        self.writes.clear()
        self.group.abandon("NOT_COORDINATOR")
        self.deliver(self.group.answers + [(ticket, Joined("NOT_COORDINATOR")) for ticket in refused])
        self.restart()

    def restart(self) -> None:
        self.group = self.load() if self.document is not None else Group(RULES)
        self.group.resume(self.now)
        self.settle()

    def drop(self, asked: Asked) -> None:
        asked.dropped = True
        if asked.client.ticket is not None and self.asked[asked.client.ticket] is asked:
            asked.client.ticket = None

    def advance(self, seconds: float) -> None:
        """Time passes; timers go off when they are due."""
        end = self.now + seconds
        while (due := self.group.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.group.tick(self.now)
            self.settle()
        self.now = end

    # -- the clients' part -------------------------------------------------------------------------------------------

    def ask(self, client: Client) -> int:
        ticket = len(self.asked) + 1
        self.asked[ticket] = Asked(client, self.now)
        client.ticket = ticket
        return ticket

    def join(self, client: Client, *, twice: bool = True, skips: bool = True) -> None:
        self.ids += 1
        protocols = tuple((name, b"%d" % client.name) for name in client.protocols)
        fresh = f"m{self.ids}"
        ask = Join(
            client.member_id,
            client.instance_id,
            "c",
            "h",
            "consumer",
            protocols,
            client.session,
            client.rebalance,
            fresh,
            twice,
            skips,
        )
        client.synced, client.owned = False, frozenset()
        self.group.join(ask, self.ask(client), self.now)
        self.settle()

    def sync(self, client: Client) -> None:
        assignments: dict[str, bytes] = {}
        if client.leader:
            count = len(client.others)
            assignments = {one: bytes(PARTITIONS)[turn::count] for turn, one in enumerate(client.others)}
        ask = Sync(client.member_id, client.instance_id, client.generation, None, None, assignments)
        self.group.sync(ask, self.ask(client), self.now)
        self.settle()

    def heartbeat(self, client: Client) -> str:
        fault = self.group.heartbeat(client.member_id, client.instance_id, client.generation, self.now)
        if fault and fault != "REBALANCE_IN_PROGRESS":
            client.reset(fault)
        client.fault = fault
        self.settle()
        return fault

    def commit(self, client: Client) -> str:
        fault = self.group.commit(client.member_id, client.instance_id, client.generation, self.now)
        if not fault:
            assert client.generation == self.group.generation
            assert client.member_id in self.group.members
        self.settle()
        return fault

    def leave(self, client: Client) -> None:
        named = "" if client.instance_id else client.member_id
        self.group.leave(named, client.instance_id, self.now)
        client.reset("UNKNOWN_MEMBER_ID")
        self.settle()

    def kill(self, client: Client) -> None:
        """The process ends; its connection is closed."""
        client.alive = False
        client.reset("UNKNOWN_MEMBER_ID")
        for ticket, asked in self.asked.items():
            if asked.client is client and not asked.answered:
                asked.dropped = True
                self.group.withdraw(ticket, self.now)
        client.ticket = None
        self.settle()

    def deliver(self, answers: list[tuple[object, Joined | Synced]]) -> None:
        for ticket, answer in answers:
            assert isinstance(ticket, int)
            asked = self.asked[ticket]
            assert not asked.answered, "two answers to one request"
            asked.answered = True
            if not asked.dropped and asked.client.ticket == ticket:
                asked.client.ticket = None
                self.receive(asked.client, answer)

    def receive(self, client: Client, answer: Joined | Synced) -> None:
        client.fault = answer.fault
        if isinstance(answer, Synced):
            if answer.fault:
                client.reset(answer.fault)
            else:
                self.own(client, frozenset(answer.assignment))
        elif answer.fault == "MEMBER_ID_REQUIRED":
            client.member_id = answer.member_id
        elif answer.fault:
            client.reset(answer.fault)
        else:
            client.member_id, client.generation = answer.member_id, answer.generation
            client.leader = answer.leader == answer.member_id and not answer.skip_assignment
            client.others = tuple(identity for identity, _, _ in answer.members)
            self.learn(client, answer)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def learn(self, client: Client, answer: Joined) -> None:
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
        assert (group.state is State.EMPTY) == (not group.members)
        waiting = {ticket for one in group.members for ticket in (one.joining, one.syncing) if ticket is not None}
        under_way = {ticket for _, answers in self.writes for ticket, _ in answers}
        for ticket, asked in self.asked.items():
            if not asked.answered and not asked.dropped:
                assert ticket in waiting | under_way, "nobody will answer this request"
                assert ticket in under_way or self.now - asked.at <= LONGEST, "parked for too long"
