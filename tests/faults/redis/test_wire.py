"""A bad network between broker and Redis (reliability F30, F31): answers never shift, nothing is applied twice."""

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest

from broker_process import BrokerProcess
from counts import note_values
from faults.redis.conftest import every_pair
from faults.redis.load import Load, create_topic
from faults.redis.proxy import WHOLE, RedisProxy
from kafka_server import make_batch, run
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[RedisProxy]:
    with RedisProxy(redis_server.port) as running:
        yield running


@every_pair
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_a_pipeline_cut_anywhere_answers_each_append_with_its_own_outcome(
    proxy: RedisProxy, serve: Serve, idempotent: bool
) -> None:
    """F31: five appends in flight, and each command that an append is made of is cut in its request and its reply.

    Without a producer id nothing but the store tells a repetition of ours from the first.
    """

    async def scenario() -> None:
        stored: list[tuple[int, bytes]] = []
        async with connect(broker.port) as client:
            await client.create("t")
            producer = await start_producer(client)

            async def send(*batches: list[bytes]) -> None:
                """All of them at a time; what they are told goes into `stored`."""
                sequence = len(stored)
                for values in batches:
                    owner = (*producer, sequence) if idempotent else (-1, -1, -1)
                    client.send_produce("t", make_batch(*values, producer=owner))
                    sequence += len(values)
                for values in batches:
                    row = (await client.reply())["responses"][0]["partition_responses"][0]
                    assert row["error_code"] == 0, row
                    stored.extend((row["base_offset"] + each, value) for each, value in enumerate(values))

            await send([b"first"])
            traces = []
            for _ in range(3):
                before = len(proxy.trace)
                await send([b"an", b"append"])
                traces.append(proxy.trace[before:])
            # What is not in all of them is none of it: now and then the server is looked at.
            for name in [name for name in dict.fromkeys(traces[0]) if all(name in trace for trace in traces)]:
                ways = [(proxy.cut_request, place) for place in (0, 20, WHOLE)]
                ways += [(proxy.cut_reply, place) for place in (0, 2)]
                for number, (way, place) in enumerate(ways):
                    cut = way(name, place)
                    await send(*([b"%s:%d:%d:%d" % (name, number, n, each) for each in range(3)] for n in range(5)))
                    # On a busy machine it was looked at in all of them: what comes then is met when it comes.
                    assert await asyncio.to_thread(cut.wait, 60), (name, number)
            found = await read_places(client, "t")
            note_values(stored, found)
            assert found == stored

    broker = serve(proxy.url)
    run(scenario)


def test_slow_and_torn(proxy: RedisProxy, serve: Serve) -> None:
    """F30: 200 ms to the server and back, where some pipelines meet a reset; then many more do, without the delay."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    broker = serve(proxy.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(20)
        proxy.chance.seed(seed)
        proxy.latency, proxy.reset_chance = 0.1, 0.003
        load.wait_for(100)
        proxy.latency, proxy.reset_chance = 0.0, 0.03
        load.wait_for(200)
        while proxy.resets <= 3:
            load.wait_for(20)  # on a busy machine many records go in few commands
        proxy.reset_chance = 0.0
    assert load.check(broker.port) == set()
