"""Two brokers over one Redis, and one of them is not what it believes to be (reliability F12): one is obeyed.

Not over workers: nobody takes over from a worker before its process, and with it its locks, is gone.
"""

import asyncio
import time
from collections.abc import Callable

from broker_process import BrokerProcess
from faults.groups.lives import QUICK, Pair
from faults.redis.proxy import RedisProxy
from kafka_server import run
from redis_server import RedisServer


def test_a_coordinator_that_slept_says_nothing_any_more(
    serve: Callable[..., BrokerProcess], redis_server: RedisServer
) -> None:
    """Requests waited in its sockets while another broker took over."""
    sleeper, other = (serve(redis_server.url, *QUICK) for _ in range(2))

    async def scenario() -> None:
        pair = Pair(sleeper, other, redis_server)
        async with pair.ending:
            await pair.begin()
            under_way = [(await pair.talk(life, "former"), life) for life in pair.lives]
            for at, life in under_way:
                at.send("commit", life.member, life.offset_for("commit"))
            sleeper.pause()
            vain = []
            for life in pair.lives:
                vain += life.ask_in_vain([await pair.talk(life, "former") for _ in range(4)])
            await pair.take_over()

            awake, enough = time.monotonic(), asyncio.Event()
            sleeper.resume()
            probes = [
                asyncio.create_task(life.keep_asking(await pair.talk(life, broker), enough))
                for life in pair.lives
                for broker in pair.brokers
            ]
            for at, member in vain:
                answer, _ = await at.hear(member, awake)
                assert answer.error == "NOT_COORDINATOR", answer
            for at, life in under_way:
                await at.hear(life.member)
            await pair.come_back()
            enough.set()
            await asyncio.gather(*probes)
            pair.check()

    run(scenario)


def test_a_coordinator_cut_off_from_redis_stops_before_another_begins(
    serve: Callable[..., BrokerProcess], redis_server: RedisServer
) -> None:
    """The former coordinator lives, hears its members, and has in memory all that they ask for."""
    with RedisProxy(redis_server.port) as link:
        cut_off, other = serve(link.url, *QUICK), serve(redis_server.url, *QUICK)

        async def scenario() -> None:
            pair = Pair(cut_off, other, redis_server)
            async with pair.ending:
                await pair.begin()
                enough = asyncio.Event()
                probes = [
                    asyncio.create_task(life.keep_asking(await pair.talk(life, broker), enough, kinds))
                    for life in pair.lives
                    for broker in pair.brokers
                    # A commit waits as long as Redis is away; from one the other broker would learn that it is over.
                    for kinds in ([["commit"], ["fetch"]] if broker == "former" else [["fetch"]])
                ]
                link.hold()
                await pair.take_over()
                link.release()
                for life in pair.lives:
                    life.rounds["former"] = 0
                await pair.come_back()
                enough.set()
                await asyncio.gather(*probes)
                pair.check()

        run(scenario)
