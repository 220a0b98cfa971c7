"""Groups of one member each at two brokers over one Redis, and what is said to them by both."""

import asyncio
import itertools
import json
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack

from broker_process import BrokerProcess
from faults.groups.talk import TOPIC, Member, Talk, talk
from group_history import NOTHING, Answer, check, count_ownerships
from kafka_server import FIND_COORDINATOR
from korvet_fast.core.groups.documents import partition_for
from korvet_fast.core.groups.ownership import owner_key
from raw_connection import connect
from redis_server import RedisServer

QUICK = (
    # They look at each other eight times in an interval: time enough for two to believe that they have a group. The
    # session is longer than a busy machine lets a broker stand still, as how often a group changes hands is counted.
    *("broker.heartbeat.interval.ms=1500", "broker.session.timeout.ms=8000"),
    "group.initial.rebalance.delay.ms=0",
)
PROTOCOLS = ("classic", "consumer") * 2
NAMES = [f"group-{number}" for number in range(40)]
ALL = ("beat", "commit", "fetch")


class Life:
    """A group with one member, and what is said to it by both brokers."""

    def __init__(self, name: str, protocol: str) -> None:
        self.name = name
        self.member = Member(name, protocol, "one" if protocol == "consumer" else "")
        self.said: list[Answer] = []
        self.offsets = itertools.count(1)
        self.rounds = {"former": 0, "other": 0}  # in which everything was answered well

    def offset_for(self, kind: str) -> int:
        """To be committed; never one twice."""
        return next(self.offsets) if kind == "commit" else NOTHING

    async def begin(self, at: Talk) -> None:
        _, self.member = await at.join(self.member)
        await self.go_on(at)

    async def go_on(self, at: Talk) -> None:
        for kind in ("sync", *ALL) if self.member.protocol == "classic" else ALL:
            answer, self.member = await at.ask(kind, self.member, self.offset_for(kind))
            assert answer.error == "", answer

    async def rebalance(self, at: Talk) -> None:
        """One generation more: the leader joins again, or somebody else comes."""
        before = self.member.generation
        if self.member.protocol == "classic":
            await self.begin(at)
        else:
            await at.join(self.member._replace(id="two", generation=-1))
            await self.go_on(at)
        assert self.member.generation == before + 1

    def ask_in_vain(self, talks: list[Talk]) -> list[tuple[Talk, Member]]:
        """Everything a member can ask for, without waiting for the answers. A join and a sync may wait."""
        first, second, third, fourth = talks
        newcomer = self.member._replace(id="new", generation=-1)
        asked = [(first, self.member, kind) for kind in ("beat", "commit", "fetch", "commit", "beat")]
        asked += [(second, self.member, "join"), (third, newcomer, "join")]
        asked += [(fourth, self.member, "sync")] if self.member.protocol == "classic" else []
        for at, member, kind in asked:
            at.send(kind, member, self.offset_for(kind))
        return [(at, member) for at, member, _ in asked]

    async def keep_asking(self, at: Talk, enough: asyncio.Event, kinds: Iterable[str] = ALL) -> None:
        """Also a broker that does not have the group, until it is enough."""
        while not enough.is_set():
            errors = []
            for kind in kinds:
                answer, _ = await at.ask(kind, self.member, self.offset_for(kind))
                errors.append(answer.error)
            self.rounds[at.broker] += not any(errors)
            await asyncio.sleep(0.02)


class Pair:
    """Two brokers, and groups that the former of them coordinates."""

    def __init__(self, former: BrokerProcess, other: BrokerProcess, redis_server: RedisServer) -> None:
        self.brokers = {"former": former, "other": other}
        self.redis_server = redis_server
        self.lives: list[Life] = []
        self.ending = AsyncExitStack()
        self._before: dict[str, int] = {}

    async def begin(self) -> None:
        """The groups are there, each with one member at the former broker."""
        former, other = self.brokers["former"].port, self.brokers["other"].port
        async with connect(other) as client:
            await client.create(TOPIC)
        while set((shares := await find(other)).values()) != {former, other} or await find(former) != shares:
            await asyncio.sleep(0.02)
        names = [name for name in NAMES if shares[name] == former]
        self.lives = [Life(*pair) for pair in zip(names, PROTOCOLS, strict=False)]
        assert len(self.lives) == len(PROTOCOLS)
        for life in self.lives:
            self._before[life.name] = takings(self.redis_server, life.name) - 1
            await life.begin(await self.talk(life, "former"))

    async def talk(self, life: Life, broker: str) -> Talk:
        """A new connection."""
        return await self.ending.enter_async_context(talk(self.brokers[broker].port, broker, life.said))

    async def take_over(self) -> None:
        """The other broker takes the groups over, which costs no rebalance; afterwards each rebalances once there."""
        while self.brokers["former"].port in (await find(self.brokers["other"].port)).values():
            await asyncio.sleep(0.02)
        for life in self.lives:
            at = await self.talk(life, "other")
            generation = life.member.generation
            while (await at.ask("fetch", life.member))[0].error:
                await asyncio.sleep(0.02)
            await life.go_on(at)
            assert life.member.generation == generation
            await life.rebalance(at)

    async def come_back(self) -> None:
        """Until the former broker has them again."""
        while not all(life.rounds["former"] > 5 for life in self.lives):
            await asyncio.sleep(0.02)

    def check(self) -> None:
        """Every group was obeying one broker, then the other, then the former one again; never two."""
        for life in self.lives:
            check(life.said, {life.name: takings(self.redis_server, life.name) - self._before[life.name]})
            assert count_ownerships(life.said) == 3


async def find(port: int, names: Sequence[str] = NAMES) -> dict[str, int]:
    """By group, the port of its coordinator, as the broker on `port` says."""
    async with connect(port) as client:
        rows = (await client.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=names))["coordinators"]
    return {row["key"]: row["port"] for row in rows}


def takings(redis_server: RedisServer, group: str) -> int:
    """How often the store has let somebody have the group."""
    key = owner_key(partition_for(group))
    document = redis_server.call("HGET", f"korvet:@registry:{key.partition('/')[0]}", key)
    return int(json.loads(document)["epoch"])
