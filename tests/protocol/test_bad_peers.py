"""Hostile peers against a broker process: it stays small, and a well-behaved client is served all the while."""

import asyncio
import random
import resource
import signal
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from broker_process import BrokerProcess
from kafka_requests import EVERY, request_of
from kafka_server import FETCH, RawClient, frame, make_batch, run
from korvet_fast.wire.kafka.routes import ROUTES

MIB = 1 << 20
ROOM = 64 * MIB  # what an attack may add to the broker's memory, pool included
POOL = 16 * MIB

SETTINGS = (f"queued.max.request.bytes={POOL}", "max.connection.creation.rate=100000")


@pytest.fixture(autouse=True)
def many_sockets() -> Iterator[None]:
    """The tests here hold more sockets than some systems allow a process by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def connect(broker: BrokerProcess) -> RawClient:
    return RawClient(*await asyncio.open_connection("127.0.0.1", broker.port, limit=4 * MIB))


async def send(broker: BrokerProcess, sent: bytes, *, half_close: bool = False) -> bytes:
    """The broker's answer to these bytes before it closes, or until the sending half is closed."""
    client = await connect(broker)
    try:
        client.writer.write(sent)
        if half_close:
            client.writer.write_eof()
        return await client.ended()
    except ConnectionError:
        return b""
    finally:
        client.writer.close()


class Witness:
    """A well-behaved client that produces and fetches all the time; any error or disorder fails the test."""

    def __init__(self, broker: BrokerProcess, client: RawClient) -> None:
        self.process = psutil.Process(broker.pid)
        self.client = client
        self.rounds = 0
        self.memory = 0
        self.task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        await self.client.create("witness")
        while True:
            row = await self.client.produce("witness", make_batch(b"witness"))
            assert (row["error_code"], row["base_offset"]) == (0, self.rounds)
            row = await self.client.fetch("witness", self.rounds, max_wait_ms=5000)
            assert row["error_code"] == 0
            assert len(row["records"]) > 0
            self.rounds += 1

    async def is_served(self) -> None:
        """Twenty rounds more succeed, and the broker's memory is within `ROOM` of what it was at first."""
        aim = self.rounds + 20
        while self.rounds < aim:
            if self.task.done():
                self.task.result()
            await asyncio.sleep(0.001)
        memory = self.process.memory_info().rss
        self.memory = self.memory or memory
        assert memory < self.memory + ROOM


@asynccontextmanager
async def witnessed(broker: BrokerProcess) -> AsyncIterator[Witness]:
    """Around an attack: a witness is served before, during and after it."""
    client = await connect(broker)
    witness = Witness(broker, client)
    try:
        await witness.is_served()
        yield witness
        await witness.is_served()
    finally:
        witness.task.cancel()
        await asyncio.gather(witness.task, return_exceptions=True)
        client.writer.close()


Start = Callable[..., BrokerProcess]


def test_random_bytes(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> None:
        chance = random.Random(3)
        async with witnessed(broker):
            for _ in range(300):
                noise = chance.randbytes(chance.randint(1, 2000))
                await send(broker, noise, half_close=True)
                assert await send(broker, frame(b"\x7f\x7f" + noise)) == b""

    run(scenario)


def test_streams_that_end_anywhere(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> None:
        async with witnessed(broker):
            for key, route in ROUTES.items():
                whole = frame(request_of(key, route.highest))
                for size in range(0, len(whole), 7):
                    assert await send(broker, whole[:size], half_close=True) == b"", (key, size)

    run(scenario)


def test_counts_and_lengths_that_lie(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> None:
        chance = random.Random(5)
        async with witnessed(broker):
            for damage in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\xff\xff\xff\xff\x0f"):
                for key, version in EVERY:
                    whole = bytearray(request_of(key, version))
                    at = chance.randrange(8, len(whole) - len(damage))
                    if key == FETCH:
                        at = max(at, 30)  # behind the time a long poll may take
                    whole[at : at + len(damage)] = damage
                    await send(broker, frame(whole), half_close=True)
            for length in (-1, -(2**31), 2**31 - 1, 100 * MIB + 1):
                assert await send(broker, struct.pack(">i", length) + bytes(100)) == b""

    run(scenario)


def test_a_thousand_half_open_connections(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> None:
        async with witnessed(broker) as witness:
            peers = [await connect(broker) for _ in range(1000)]
            announced = struct.pack(">i", 100 * MIB)
            for number, peer in enumerate(peers):
                peer.writer.write((b"", announced[:2], announced, announced + b"\0\0\0\x0b" * 3)[number % 4])
            await witness.is_served()
            for peer in peers:
                peer.writer.close()

    run(scenario)


def test_requests_that_never_end_do_not_fill_the_memory(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> None:
        async with witnessed(broker) as witness:
            peers = [await connect(broker) for _ in range(40)]
            part = struct.pack(">i", 8 * MIB) + bytes(4 * MIB)
            for peer in peers:
                peer.writer.write(part)  # 160 MiB in all; most of it stays in the kernels' and the client's buffers
            for peer in peers[:2]:
                await peer.writer.drain()
            await witness.is_served()
            for peer in peers:
                peer.writer.transport.abort()

    run(scenario)


def test_a_reader_that_does_not_read(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> None:
        async with witnessed(broker) as witness:
            client = await connect(broker)
            await client.create("large")
            for _ in range(10):
                await client.produce("large", make_batch(b"x" * 1_000_000))
            deaf = socket.create_connection(("127.0.0.1", broker.port))
            partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 25}
            fetch = {"max_bytes": 1 << 25, "topics": [{"topic": "large", "partitions": [partition]}]}
            with deaf:
                for _ in range(200):
                    deaf.sendall(frame(client.request(FETCH, 12, fetch)))
                deaf.recv(1)
                await witness.is_served()
                assert len((await client.fetch("large", 0))["records"]) > 1_000_000
            client.writer.close()

    run(scenario)


def test_the_drain_answers_what_is_under_way(start_broker: Start) -> None:
    broker = start_broker(*SETTINGS)

    async def scenario() -> int:
        client, poll, idle = [await connect(broker) for _ in range(3)]
        await client.create("t")
        poll.send_fetch("t", 0, max_wait_ms=90_000)
        for _ in range(50):
            client.send_produce("t", make_batch(b"x" * 100))
        first = (await client.reply())["responses"][0]["partition_responses"][0]
        assert first["error_code"] == 0
        ended = asyncio.get_running_loop().run_in_executor(None, broker.stop, signal.SIGTERM)
        acked = 1
        try:
            while client.expected:
                acked += (await client.reply())["responses"][0]["partition_responses"][0]["error_code"] == 0
        except asyncio.IncompleteReadError as end:
            assert end.partial == b""  # whole answers, then an orderly end
        assert await client.ended() == b""
        assert (await poll.reply())["responses"][0]["partitions"][0]["error_code"] == 0
        assert await idle.ended() == b""
        assert await ended == 0
        for each in (client, poll, idle):
            each.writer.close()
        return acked

    acked: list[int] = []

    async def first_life() -> None:
        acked.append(await scenario())

    run(first_life)
    broker.start()

    async def second_life() -> None:
        client = await connect(broker)
        assert (await client.fetch("t", 0))["high_watermark"] >= acked[0]
        client.writer.close()

    run(second_life)


def test_a_second_signal_ends_at_once(start_broker: Start) -> None:
    broker = start_broker()  # its memory lets an answer be as large as Fetch asks for

    async def scenario() -> None:
        client = await connect(broker)
        await client.create("t")
        for _ in range(20):
            await client.produce("t", make_batch(b"x" * 1_000_000))
        deaf = socket.create_connection(("127.0.0.1", broker.port))
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 25}
        fetch = {"max_bytes": 1 << 25, "topics": [{"topic": "t", "partitions": [partition]}]}
        deaf.sendall(frame(client.request(FETCH, 12, fetch)))
        deaf.recv(1)  # its answer is larger than all buffers, and the rest is never taken
        process = psutil.Process(broker.pid)
        process.send_signal(signal.SIGTERM)
        assert await client.ended() == b""  # so the first signal has arrived
        ended = asyncio.get_running_loop().run_in_executor(None, broker.stop, signal.SIGTERM)
        assert await ended == 1
        deaf.close()
        client.writer.close()

    run(scenario)


def test_an_address_in_use_is_said_to_be(start_broker: Start, tmp_path: Path) -> None:
    broker = start_broker(*SETTINGS)
    second = BrokerProcess(tmp_path / "other")
    second.port = broker.port
    with pytest.raises(AssertionError, match=f"cannot listen on 127.0.0.1:{broker.port}"):
        second.start()
