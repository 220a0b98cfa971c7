"""A right that is taken away from the broker's Redis user while it runs: nothing is appended in doubt or twice."""

import asyncio
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from faults.redis.load import AGAIN
from faults.redis.log import wait_for_line
from kafka_server import make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
LATER = AGAIN | {CODES["NOT_ENOUGH_REPLICAS"]}


@pytest.mark.parametrize("right", ["hmget", "hset", "xadd", "multi"])
def test_what_needs_a_right_that_is_gone_is_refused_until_it_is_back(
    serve: Serve, redis_server: RedisServer, right: str
) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            who = {"plain": None, "idempotent": await start_producer(client)}
            stored: dict[str, list[bytes]] = {}

            async def send(topic: str) -> int:
                taken = stored.setdefault(topic, [])
                identity = who[topic]
                producer = (*identity, len(taken)) if identity else (-1, -1, -1)
                row = await client.produce(topic, make_batch(b"%d" % len(taken), producer=producer))
                if row["error_code"] == 0:
                    taken.append(b"%d" % len(taken))
                return int(row["error_code"])

            for topic in who:
                await client.create(topic)
                assert [await send(topic) for _ in range(5)] == [0] * 5
            redis_server.call("ACL", "SETUSER", "me", f"-{right}")
            for topic in who:
                while (code := await send(topic)) == 0:
                    await asyncio.sleep(0.01)
                assert code in LATER
            wait_for_line(broker, f"grant it ACL SETUSER <user> +{right} ")
            for topic in who:
                for _ in range(5):
                    assert await send(topic) in LATER
            redis_server.call("ACL", "SETUSER", "me", "+@all")
            for topic, values in stored.items():
                while (code := await send(topic)) != 0:
                    assert code in LATER
                    await asyncio.sleep(0.02)
                assert [value for _, value in await read_places(client, topic)] == values
            lines = [line for line in broker.log if "grant it" in line and "store.redis" in line]
            assert len(lines) == 1

    redis_server.call("ACL", "SETUSER", "me", "reset", "on", ">p", "~*", "&*", "+@all")
    broker = serve(redis_server.url.replace("//", "//me:p@"))
    run(scenario)
