"""Two brokers over one Redis, one of them asleep for longer than it is believed to be alive (reliability F12)."""

import asyncio
import itertools
import json
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.groups.talk import TOPIC, Member, Talk, talk
from group_history import Answer, check, count_tenures
from kafka_server import FIND_COORDINATOR, run
from korvet_fast.core.groups.documents import slot_of
from korvet_fast.core.groups.fence import owner_key
from raw_connection import connect
from redis_server import RedisServer

QUICK = (
    *("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500"),
    "group.initial.rebalance.delay.ms=0",
)
PROTOCOLS = ("classic", "consumer") * 2
NAMES = [f"group-{number}" for number in range(40)]

pytestmark = pytest.mark.timeout(90)


class Life:
    """A group with one member, and what is said to it by both brokers."""

    def __init__(self, name: str, protocol: str) -> None:
        self.name = name
        self.member = Member(name, protocol, "one" if protocol == "consumer" else "")
        self.said: list[Answer] = []
        self.offsets = itertools.count(1)
        self.rounds = {"sleeper": 0, "other": 0}  # in which everything was answered well

    async def begin(self, at: Talk) -> None:
        _, self.member = await at.join(self.member)
        await self.go_on(at)

    async def go_on(self, at: Talk) -> None:
        kinds = ["beat", "commit", "fetch"]
        for kind in ["sync", *kinds] if self.member.protocol == "classic" else kinds:
            answer, self.member = await at.ask(kind, self.member, next(self.offsets) if kind == "commit" else -1)
            assert answer.fault == "", answer

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
        """Everything a member can ask for, without waiting for the answers. A join and a sync may be parked."""
        first, second, third, fourth = talks
        newcomer = self.member._replace(id="new", generation=-1)
        asked = [(first, self.member, kind) for kind in ("beat", "commit", "fetch", "commit", "beat")]
        asked += [(second, self.member, "join"), (third, newcomer, "join")]
        asked += [(fourth, self.member, "sync")] if self.member.protocol == "classic" else []
        for at, member, kind in asked:
            at.send(kind, member, next(self.offsets) if kind == "commit" else -1)
        return [(at, member) for at, member, _ in asked]

    async def keep_asking(self, at: Talk, enough: asyncio.Event) -> None:
        """Also a broker that does not have the group, until it is enough."""
        while not enough.is_set():
            faults = []
            for kind in ("beat", "commit", "fetch"):
                answer, _ = await at.ask(kind, self.member, next(self.offsets) if kind == "commit" else -1)
                faults.append(answer.fault)
            self.rounds[at.broker] += not any(faults)
            await asyncio.sleep(0.02)


async def find(port: int) -> dict[str, int]:
    """By group, the port of its coordinator."""
    async with connect(port) as client:
        rows = (await client.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=NAMES))["coordinators"]
    return {row["key"]: row["port"] for row in rows}


async def wait_for(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.02)


def takings(redis_server: RedisServer, group: str) -> int:
    """How often the store has let somebody have the group."""
    key = owner_key(slot_of(group))
    document = redis_server.call("HGET", f"korvet:@registry:{key.partition('/')[0]}", key)
    return int(json.loads(document)["epoch"])


def fall_asleep(broker: BrokerProcess) -> None:
    """SIGSTOP, and until it has really stopped."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{broker.pid}/task")
    while any("\nState:\tT" not in (task / "status").read_text() for task in tasks.iterdir()):
        time.sleep(0.001)


def test_of_two_brokers_one_is_obeyed(serve: Callable[..., BrokerProcess], redis_server: RedisServer) -> None:
    sleeper, other = (serve(redis_server.url, *QUICK) for _ in range(2))

    async def scenario() -> None:
        async with AsyncExitStack() as ending, connect(other.port) as client:
            await client.create(TOPIC)
            while set((shares := await find(other.port)).values()) != {sleeper.port, other.port} or (
                await find(sleeper.port) != shares
            ):
                await asyncio.sleep(0.02)
            names = [name for name in NAMES if shares[name] == sleeper.port]
            lives = [Life(*pair) for pair in zip(names, PROTOCOLS, strict=False)]
            assert len(lives) == len(PROTOCOLS)

            async def open_talk(life: Life, broker: BrokerProcess) -> Talk:
                name = "sleeper" if broker is sleeper else "other"
                return await ending.enter_async_context(talk(broker.port, name, life.said))

            before = {life.name: takings(redis_server, life.name) - 1 for life in lives}
            asking = []
            for life in lives:
                await life.begin(await open_talk(life, sleeper))
                under_way = await open_talk(life, sleeper)
                under_way.send("commit", life.member, next(life.offsets))
                asking.append((under_way, life.member))
            fall_asleep(sleeper)
            vain = []
            for life in lives:
                vain += life.ask_in_vain([await open_talk(life, sleeper) for _ in range(4)])
            while sleeper.port in (await find(other.port)).values():
                await asyncio.sleep(0.02)
            for life in lives:
                talking = await open_talk(life, other)
                generation = life.member.generation
                while (await talking.ask("fetch", life.member))[0].fault:
                    await asyncio.sleep(0.02)
                await life.go_on(talking)
                assert life.member.generation == generation  # a coordinator that moves costs no rebalance
                await life.rebalance(talking)

            awake, enough = time.monotonic(), asyncio.Event()
            assert sleeper.process is not None
            sleeper.process.send_signal(signal.SIGCONT)
            probes = [
                asyncio.create_task(life.keep_asking(await open_talk(life, broker), enough))
                for life in lives
                for broker in (sleeper, other)
            ]
            for at, member in vain:
                answer, _ = await at.hear(member, awake)
                assert answer.fault == "NOT_COORDINATOR", answer
            for at, member in asking:
                await at.hear(member)
            await wait_for(lambda: all(life.rounds["sleeper"] > 5 for life in lives))  # it has them again
            enough.set()
            await asyncio.gather(*probes)
            for life in lives:
                check(life.said, {life.name: takings(redis_server, life.name) - before[life.name]})
                assert count_tenures(life.said) == 3

    run(scenario)
