"""Redis dies while it writes an append into its append-only file, and starts twice (reliability F06).

As it starts for the first time it does not carry the torn transaction out, but leaves its beginning in the file. Behind
that comes whatever is written next, so the second start carries it out.
"""

import asyncio
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from counts import note_values
from faults.redis.conftest import every_pair
from faults.redis.load import AGAIN
from faults.redis.proxy import RedisProxy
from faults.redis.test_torn_file import find_file
from kafka_server import RawClient, make_batch, run
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer, free_port

Places = list[tuple[int, bytes]]
TORN = [b"torn %d" % number for number in range(20)]


class Sender:
    """An idempotent producer of the topic `t` that sends again what it is told to."""

    def __init__(self, client: RawClient, producer: tuple[int, int]) -> None:
        self.client = client
        self.producer = producer
        self.sequence = 0

    def make(self, *values: bytes) -> bytearray:
        return make_batch(*values, producer=(*self.producer, self.sequence))

    async def send(self, *values: bytes) -> Places:
        """The next batch, until it is taken; where it went."""
        while (row := await self.client.produce("t", self.make(*values)))["error_code"]:
            assert row["error_code"] in AGAIN, row
        self.sequence += len(values)
        return [(row["base_offset"] + at, value) for at, value in enumerate(values)]


async def tear(sender: Sender, proxy: RedisProxy, server: RedisServer, cut: int) -> None:
    """An append that Redis carries out, and whose last bytes it does not get into its file. Redis starts again."""
    proxy.target = free_port()  # nobody comes back before Redis is dead
    lost = proxy.lose_reply(b"EXEC")
    sender.client.send_produce("t", sender.make(*TORN))
    assert await asyncio.to_thread(lost.wait, 120)
    server.kill()
    file = find_file(server.directory)
    whole = file.read_bytes()
    end = whole.index(b"EXEC\r\n", whole.rindex(TORN[-1])) + len(b"EXEC\r\n")  # a heartbeat may have come after it
    file.write_bytes(whole[: end - cut])
    server.start()
    proxy.target = server.port
    row = (await sender.client.reply())["responses"][0]["partition_responses"][0]
    assert row["error_code"] in AGAIN, row


@every_pair
@pytest.mark.parametrize("cut", [3, 60, 400])
@pytest.mark.parametrize("early", [True, False], ids=["sent-again-at-once", "sent-again-late"])
def test_what_was_torn_does_not_come_back(
    serve: Callable[..., BrokerProcess], redis_server: RedisServer, cut: int, early: bool
) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            sender, other = [Sender(client, await start_producer(client)) for _ in range(2)]
            stored = await sender.send(b"before")
            await tear(sender, proxy, redis_server, cut)
            if early:
                stored += await sender.send(*TORN)
            stored += await other.send(b"between")
            assert await read_places(client, "t") == stored
            redis_server.restart()
            stored += await other.send(b"after")
            if not early:
                stored += await sender.send(*TORN)
            assert await read_places(client, "t") == stored
            redis_server.restart()
            stored += await sender.send(b"last")
            found = await read_places(client, "t")
            note_values(stored, found)
            assert found == stored

    with RedisProxy(redis_server.port) as proxy:
        broker = serve(proxy.url)
        run(scenario)
