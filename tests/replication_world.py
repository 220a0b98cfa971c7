"""Brokers that copy one log, in memory: virtual time, a network that a test scripts, disks that lose what is unflushed.

The rules are those of `core.replication`; this is the least that carries them out. A `Registry` stands for the metadata
log: one value, compared and set, which answers whoever reaches it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from korvet_fast.core.partition.leader_epochs import LeaderEpochCache
from korvet_fast.core.replication.follower import FollowerState
from korvet_fast.core.replication.leader_progress import LagLimits, LeaderProgress

Record = tuple[int, int]  # the epoch it was written under, and its value
REGISTRY = 0
TIMEOUT = 10.0


class Assignment(NamedTuple):
    """The registry's state of the log. `version` counts its changes."""

    version: int
    leader: int
    epoch: int
    isr: frozenset[int]


@dataclass
class Message:
    """On its way from one to another; `deliver` is what happens when it arrives."""

    sender: int
    receiver: int
    deliver: Callable[[], None]


@dataclass
class Disk:
    """The state that a crash leaves: the records that were flushed, and a watermark that may be out of date."""

    log: list[Record] = field(default_factory=list)
    flushed: int = 0
    watermark: int = 0


class Network:
    """Messages under way, in no order; `cut` pairs lose what they send each other."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.cut: set[frozenset[int]] = set()

    def send(self, sender: int, receiver: int, deliver: Callable[[], None]) -> None:
        self.messages.append(Message(sender, receiver, deliver))

    def deliver(self, index: int, *, keep: bool = False) -> None:
        """Let one arrive; `keep`: it will arrive once more."""
        if self.messages:
            index %= len(self.messages)
            message = self.messages[index] if keep else self.messages.pop(index)
            if frozenset((message.sender, message.receiver)) not in self.cut:
                message.deliver()

    def drop(self, index: int) -> None:
        if self.messages:
            del self.messages[index % len(self.messages)]


class Broker:
    """One broker. `leading` and `following`: at most one of them is there."""

    def __init__(self, world: "World", identity: int) -> None:
        self.world = world
        self.id = identity
        self.disk = Disk()
        self.up = True
        self.leading: LeaderProgress | None = None
        self.following: FollowerState | None = None
        self.known = world.registry._replace(version=-1)
        self.epochs = LeaderEpochCache()
        self.asked: dict[int, int] = {}  # values that acks=all waits for: offset -> value
        self.acquiring = False

    @property
    def log(self) -> list[Record]:
        return self.disk.log

    @property
    def watermark(self) -> int:
        state = self.leading or self.following
        return state.high_watermark if state is not None else self.disk.watermark

    # -- the disk --------------------------------------------------------------------------------------------------

    def crash(self) -> None:
        self.up = False
        self.leading = self.following = None
        del self.log[self.disk.flushed :]
        self.disk.watermark = min(self.disk.watermark, len(self.log))
        self.asked.clear()

    def restart(self) -> None:
        if not self.up:
            self.up = True
            self.known = self.known._replace(version=-1)
            self.epochs = find_epochs(self.log)
            self.following = FollowerState(self.epochs, len(self.log), self.disk.watermark)
            self.acquiring = False

    def flush(self) -> None:
        self.disk.flushed = len(self.log)
        if self.leading is not None:
            self.leading.appended(self.disk.flushed)
            self.acknowledge()

    # -- the registry ----------------------------------------------------------------------------------------------

    def ask_registry(self) -> None:
        world = self.world
        world.network.send(
            self.id, REGISTRY, lambda: world.network.send(REGISTRY, self.id, self.learner(world.registry))
        )

    def learner(self, found: Assignment) -> Callable[[], None]:
        return lambda: self.learn(found)

    def learn(self, found: Assignment) -> None:
        if not self.up or found.version <= self.known.version:
            return
        self.known = found
        if self.leading is not None:
            if (found.leader, found.epoch) == (self.id, self.leading.epoch):
                self.leading.end_change(found.isr)
                self.acknowledge()
                return
            self.resign()
        if found.leader == self.id:
            self.acquire()
        else:
            assert self.following is not None
            if found.epoch > self.following.epoch:
                self.following.forget_leader()
            self.following.follow_leader(found.leader, found.epoch)

    def resign(self) -> None:
        assert self.leading is not None
        self.following = FollowerState(
            self.epochs, len(self.log), self.leading.high_watermark, epoch=self.leading.epoch
        )
        self.leading = None
        self.asked.clear()

    def acquire(self) -> None:
        """Ask for an epoch of this start's own: what an earlier one wrote under the last may be gone."""
        found, world = self.known, self.world

        def answered(taken: bool, now: Assignment) -> Callable[[], None]:
            def deliver() -> None:
                if self.up and taken and self.leading is None and now.version > self.known.version:
                    self.known = now
                    self.become_leader(now)
                else:
                    self.learn(now)

            return deliver

        def arrive() -> None:
            wanted = found._replace(epoch=found.epoch + 1)
            taken = world.compare_and_set(found, wanted)
            world.network.send(REGISTRY, self.id, answered(taken, world.registry))

        world.network.send(self.id, REGISTRY, arrive)

    def become_leader(self, found: Assignment) -> None:
        world = self.world
        assert world.leaders.setdefault(found.epoch, self.id) == self.id, "an epoch has one leader"
        watermark, self.following = self.watermark, None
        self.epochs.add(found.epoch, len(self.log))
        self.disk.flushed = len(self.log)
        self.leading = LeaderProgress(
            self.id,
            found.epoch,
            world.brokers,
            found.isr,
            len(self.log),
            watermark,
            world.minimum,
            LagLimits(0, TIMEOUT),
            world.now,
        )

    def check_isr(self) -> None:
        """Ask the registry for another set of those in sync, or again for the one whose answer was lost."""
        leading, world = self.leading, self.world
        if leading is None:
            if self.known.version >= 0 and self.known.leader == self.id:
                self.acquire()  # the answer to the last attempt may be lost
            return
        wanted = leading.pending or leading.propose(world.now)
        if wanted is None:
            return
        leading.begin_change(wanted)
        found = self.known

        def arrive() -> None:
            world.compare_and_set(found, found._replace(isr=wanted))
            world.network.send(REGISTRY, self.id, self.learner(world.registry))

        world.network.send(self.id, REGISTRY, arrive)

    # -- records ---------------------------------------------------------------------------------------------------

    def produce(self, value: int) -> None:
        if self.up and self.leading is not None and self.leading.suffices:
            self.asked[len(self.log)] = value
            self.log.append((self.leading.epoch, value))

    def acknowledge(self) -> None:
        assert self.leading is not None
        for offset in [one for one in self.asked if one < self.leading.high_watermark]:
            self.world.acknowledged[offset] = self.log[offset]
            del self.asked[offset]

    def fetch(self) -> None:
        """One step of a follower: ask where an epoch ends, or fetch."""
        state = self.following
        if not self.up or state is None or state.leader < 0:
            return
        leader, epoch, asking = self.world.brokers.get(state.leader), state.epoch, state.asking
        if leader is None:
            return
        self.flush()
        if asking is not None:
            self.world.network.send(self.id, leader.id, lambda: leader.answer_epoch(self, epoch, asking))
        else:
            offset = state.end
            self.world.network.send(self.id, leader.id, lambda: leader.answer_fetch(self, epoch, offset))

    def answer_epoch(self, follower: "Broker", epoch: int, asked: int) -> None:
        if self.up and self.leading is not None and self.leading.epoch == epoch:
            answer = self.epochs.find_end(asked, 0, len(self.log))
            self.world.network.send(self.id, follower.id, lambda: follower.truncate(epoch, asked, answer))

    def truncate(self, epoch: int, asked: int, answer: tuple[int, int]) -> None:
        if self.up and self.following is not None:
            end = self.following.find_divergence(epoch, asked, answer)
            if end is not None:
                assert all(
                    self.log[at] != record
                    for at, record in self.world.acknowledged.items()
                    if end <= at < len(self.log)
                ), "an acknowledged record is truncated"
                del self.log[end:]
                self.disk.flushed = min(self.disk.flushed, end)

    def answer_fetch(self, follower: "Broker", epoch: int, offset: int) -> None:
        leading = self.leading
        if not self.up or leading is None or leading.epoch != epoch or offset > len(self.log):
            return
        leading.fetched(follower.id, offset, self.world.now)
        self.acknowledge()
        records, watermark = self.log[offset : offset + 3], leading.high_watermark
        self.world.network.send(self.id, follower.id, lambda: follower.take(epoch, offset, records, watermark))

    def take(self, epoch: int, offset: int, records: Iterable[Record], watermark: int) -> None:
        state = self.following
        if self.up and state is not None and state.accepts(epoch, offset):
            for record in records:
                assert self.epochs.last <= record[0] <= epoch, "a follower would refuse what the leader has"
                self.epochs.add(record[0], len(self.log))
                self.log.append(record)
            state.appended(len(self.log))
            state.update_high_watermark(watermark)


class World:
    """`brokers` copies of a log; acks=all needs `minimum` in sync."""

    def __init__(self, brokers: int = 3, minimum: int = 2) -> None:
        self.now = 0.0
        self.minimum = minimum
        self.network = Network()
        identities = range(1, brokers + 1)
        self.registry = Assignment(0, 1, 0, frozenset(identities))
        self.acknowledged: dict[int, Record] = {}
        self.leaders: dict[int, int] = {}
        self.brokers = {identity: Broker(self, identity) for identity in identities}
        self.watermarks: dict[int, int] = defaultdict(int)
        for broker in self.brokers.values():
            broker.following = FollowerState(broker.epochs, 0, 0)

    def compare_and_set(self, expected: Assignment, wanted: Assignment) -> bool:
        taken = self.registry == expected
        if taken:
            self.registry = wanted._replace(version=expected.version + 1)
        return taken

    def move(self, identity: int) -> None:
        """The operator's safe way: to one who is in sync."""
        if identity in self.registry.isr and identity != self.registry.leader:
            self.compare_and_set(self.registry, self.registry._replace(leader=identity, epoch=self.registry.epoch + 1))

    def crash(self, identity: int) -> None:
        self.brokers[identity].crash()
        self.watermarks[identity] = 0  # a watermark on disk may be an old one

    def settle(self, rounds: int = 60) -> None:
        """No more faults: everybody is up, everything arrives, in order."""
        self.network.cut.clear()
        for broker in self.brokers.values():
            broker.restart()
        for _ in range(rounds):
            self.work()

    def work(self) -> None:
        """A second passes in which everybody does what there is to do, and all that is not cut off arrives."""
        self.now += 1.0
        for broker in self.brokers.values():
            if broker.up:
                broker.ask_registry()
                broker.flush()
                broker.fetch()
                broker.check_isr()
        for _ in range(len(self.network.messages) * 3):
            self.network.deliver(0)
        self.check()

    def check(self) -> None:
        """The rules that hold after every step."""
        for identity, broker in self.brokers.items():
            if broker.up:
                assert broker.watermark >= self.watermarks[identity], "a watermark went back"
                self.watermarks[identity] = broker.watermark
                assert broker.watermark <= len(broker.log)
            if identity in self.registry.isr:
                for offset, record in self.acknowledged.items():
                    assert offset < len(broker.log), f"{offset} was acknowledged, and {identity}, in sync, lacks it"
                    assert broker.log[offset] == record
        for broker in self.brokers.values():
            for other in self.brokers.values():
                common = min(broker.watermark, other.watermark)
                assert broker.log[:common] == other.log[:common], "logs differ below their watermarks"


def find_epochs(log: list[Record]) -> LeaderEpochCache:
    """The history that the records tell."""
    epochs = LeaderEpochCache()
    for offset, (epoch, _) in enumerate(log):
        epochs.add(epoch, offset)
    return epochs
