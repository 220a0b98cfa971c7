"""A Redis that refuses an idempotent producer's batches for want of memory: what follows them is a gap, and refused."""

import asyncio
from collections.abc import Callable

from broker_process import BrokerProcess
from counts import note_values
from faults.redis.load import AGAIN
from kafka_server import RawClient, error_of, make_batch, run
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


class Producer:
    """An idempotent producer of one-record batches."""

    def __init__(self, client: RawClient, identity: tuple[int, int]) -> None:
        self.client = client
        self.identity = identity

    async def send(self, *sequences: int) -> list[str]:
        """All at once; the error of each."""
        for sequence in sequences:
            self.client.send_produce("t", make_batch(b"%d" % sequence, producer=(*self.identity, sequence)))
        rows = [await self.client.reply() for _ in sequences]
        return [error_of(row["responses"][0]["partition_responses"][0]) for row in rows]


async def wait_for_room(client: RawClient) -> None:
    while (row := await client.produce("t", make_batch(b"probe")))["error_code"]:
        assert row["error_code"] in AGAIN
        await asyncio.sleep(0.02)


def test_finding_1_4_what_follows_refused_batches_is_a_gap(serve: Serve, redis_server: RedisServer) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            producer = Producer(client, await start_producer(client))
            for number in range(10):
                assert await producer.send(number) == [""]
            redis_server.call("CONFIG", "SET", "maxmemory", 1)
            assert "" not in await producer.send(10, 11, 12, 13, 14)
            redis_server.call("CONFIG", "SET", "maxmemory", 0)
            await wait_for_room(client)
            assert await producer.send(12) == [OUT_OF_ORDER]
            assert await producer.send(10, 11, 12, 13, 14) == [""] * 5
            values = [value for _, value in await read_places(client, "t") if value != b"probe"]
            stored = [b"%d" % number for number in range(15)]
            note_values(stored, values)
            assert values == stored

    broker = serve(redis_server.url)
    run(scenario)
