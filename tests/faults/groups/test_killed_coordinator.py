"""The broker is killed while a join, a sync or a commit waits in it (reliability F36): the group settles again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from broker_process import BrokerProcess
from faults.groups.talk import TOPIC, Member, Talk, talk
from group_history import Answer, check
from kafka_server import API_VERSIONS, DESCRIBE_GROUPS, run
from raw_connection import connect
from redis_server import RedisServer

QUICK = ("group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000")
SESSION = 30_000  # ms; nobody sends a heartbeat while others come, and while the broker starts
G = "g"


class Scene:
    """A broker, its group's members, and all that was said."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.said: list[Answer] = []
        self.ending = AsyncExitStack()

    async def talk(self) -> Talk:
        """A new connection."""
        return await self.ending.enter_async_context(talk(self.broker.port, "broker", self.said))

    async def wait_for_state(self, state: str) -> None:
        async with connect(self.broker.port) as client:
            found = ""
            while found != state:
                (group,) = (await client.ask(DESCRIBE_GROUPS, 5, groups=[G]))["groups"]
                found = group["group_state"]
                await asyncio.sleep(0.01)

    async def restart(self, waiting: list[Talk], still: RedisServer | None = None) -> None:
        """kill -9; whoever waits for an answer gets none. `still`: a server that goes on when the broker is dead."""
        self.broker.kill()
        if still is not None:
            still.resume()
        for each in waiting:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await each.client.reply()
            each.give_up()
        await asyncio.to_thread(self.broker.start)

    async def settle(self, *members: Member) -> list[Member]:
        """They live until all are in one generation; who is not known any more comes anew."""
        present, well, done = list(members), [-1] * len(members), asyncio.Event()

        async def live(number: int, at: Talk) -> None:
            while not done.is_set():
                present[number] = await self._come(at, present[number])
                answer, _ = await at.ask("sync", present[number])
                while not answer.error and not done.is_set():
                    answer, _ = await at.ask("beat", present[number])
                    well[number] = -1 if answer.error else present[number].generation
                    if len(set(well)) == 1 and well[0] >= 0:
                        done.set()
                    await asyncio.sleep(0.01)

        await asyncio.gather(*[live(number, await self.talk()) for number in range(len(members))])
        return present

    async def _come(self, at: Talk, member: Member) -> Member:
        while True:
            answer, came = await at.join(member)
            if not answer.error:
                return came
            assert answer.error in ("UNKNOWN_MEMBER_ID", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"), answer
            member = member._replace(id="") if answer.error == "UNKNOWN_MEMBER_ID" else member
            await asyncio.sleep(0.02)


@asynccontextmanager
async def play(broker: BrokerProcess) -> AsyncIterator[tuple[Scene, Talk, Member]]:
    """A group of one member, with a commit, on a connection of its own."""
    scene = Scene(broker)
    async with scene.ending:
        first = await scene.talk()
        await first.client.create(TOPIC)
        _, member = await first.join(Member(G, session=SESSION))
        assert (await first.ask("sync", member))[0].error == ""
        assert (await first.ask("commit", member, 1))[0].error == ""
        yield scene, first, member
    check(scene.said, {G: 1})  # there is one broker, however often it starts


@pytest.fixture(params=["embedded", "redis"])
def broker(request: pytest.FixtureRequest, serve: Callable[..., BrokerProcess]) -> BrokerProcess:
    return serve(request.getfixturevalue("redis_server").url if request.param == "redis" else None, *QUICK)


def test_while_a_join_is_delayed(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with play(broker) as (scene, _, member):
            newcomer = await scene.talk()
            fresh = (await newcomer.ask("join", Member(G, session=SESSION)))[1]  # it is told its id
            newcomer.send("join", fresh)
            await scene.wait_for_state("PreparingRebalance")
            await scene.restart([newcomer])
            again = await scene.talk()
            answer, _ = await again.ask("fetch", member)
            assert (answer.error, answer.offset) == ("", 1)
            assert (await again.ask("beat", member))[0].error == ""  # nobody has told it of a rebalance
            one, other = await scene.settle(member, fresh)
            assert one.id == member.id
            assert one.generation == other.generation > member.generation

    run(scenario)


def test_while_a_sync_is_delayed(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with play(broker) as (scene, first, member):
            newcomer = await scene.talk()
            fresh = (await newcomer.ask("join", Member(G, session=SESSION)))[1]
            newcomer.send("join", fresh)
            await scene.wait_for_state("PreparingRebalance")
            _, member = await first.join(member)
            _, fresh = await newcomer.hear(fresh)
            assert fresh.generation == member.generation == 2
            newcomer.send("sync", fresh)  # its leader has said nothing yet
            await scene.wait_for_state("CompletingRebalance")
            await scene.restart([newcomer])
            one, other = await scene.settle(member, fresh)
            assert (one.id, other.id) == (member.id, fresh.id)
            assert one.generation == other.generation >= 2

    run(scenario)


def test_while_a_commit_is_under_way(serve: Callable[..., BrokerProcess], redis_server: RedisServer) -> None:
    """Redis has it and has not answered: nobody was promised anything, and whatever it is stays as it is."""
    broker = serve(redis_server.url, *QUICK)

    async def scenario() -> None:
        async with play(broker) as (scene, first, member):
            redis_server.pause()
            first.send("commit", member, 2)
            async with connect(broker.port) as client:
                await client.ask(API_VERSIONS, 0)  # it has read the commit as well
            await scene.restart([first], redis_server)
            (again,) = await scene.settle(member)
            assert again.generation > member.generation
            talking = await scene.talk()
            found = [(await talking.ask("fetch", again))[0].offset for _ in range(2)]
            assert found in ([1, 1], [2, 2])
            assert (await talking.ask("commit", again, 3))[0].error == ""
            assert (await talking.ask("commit", member, 4))[0].error == "ILLEGAL_GENERATION"
            assert (await talking.ask("fetch", again))[0].offset == 3

    run(scenario)
