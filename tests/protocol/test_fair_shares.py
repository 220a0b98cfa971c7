"""One client that takes all it can, and others that must not notice: turns of the loop, memory, changes of topics.

Over real sockets to a broker process. How long somebody had to wait is told by the clock, with a wide bound, less the
time in which the machine did other things; and by how long the broker's loop was at work meanwhile, with a narrow one.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import psutil
import pytest

from broker_process import BrokerProcess
from kafka_messages import CATALOG
from kafka_server import (
    API_VERSIONS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    JOIN_GROUP,
    PRODUCE,
    RawClient,
    frame,
    make_batch,
    run,
)
from korvet_fast.net.limits import Limits
from witness import MIB, WAIT, beside, connect, open_socket, read_times, witnessed

Start = Callable[..., BrokerProcess]


def request(key: int, version: int, **values: object) -> bytes:
    """A whole request, length included."""
    header = {"api_key": key, "api_version": version, "correlation_id": 1, "client_id": "test"}
    return frame(CATALOG[key].request.encode(header | values, version))


def produce_request(topic: str, value: bytes) -> bytes:
    partition = {"index": 0, "records": make_batch(value)}
    topics = [{"name": topic, "partition_data": [partition]}]
    return request(PRODUCE, 9, acks=1, timeout_ms=60_000, topic_data=topics)


def fetch_request(topic: str, size: int) -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": size}
    topics = [{"topic": topic, "partitions": [partition]}]
    return request(FETCH, 12, max_wait_ms=0, min_bytes=1, max_bytes=size, topics=topics)


def flood(raw: socket.socket, sent: bytes, replies: int) -> None:
    """Send all of it, and wait for so many replies."""
    sender = threading.Thread(target=raw.sendall, args=(sent,))
    sender.start()
    left, rest = replies, b""
    while left:
        data = rest + raw.recv(MIB)
        assert len(data) > len(rest), "hung up on"
        at = 0
        while len(data) - at >= 4 and len(data) - at - 4 >= (size := int.from_bytes(data[at : at + 4], "big")):
            at += 4 + size
            left -= 1
        rest = data[at:]
    sender.join()


JOIN = {
    "group_id": "g",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "member_id": "nobody",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}


@pytest.mark.parametrize(
    ("one", "times"),
    [(request(API_VERSIONS, 2), 200_000), (request(JOIN_GROUP, 4, **JOIN), 60_000)],
    ids=["ApiVersions", "JoinGroup"],
)
def test_finding_2_8_requests_sent_in_a_row_do_not_stop_others(start_broker: Start, one: bytes, times: int) -> None:
    broker = start_broker()

    async def scenario() -> None:
        async with witnessed(broker):
            with open_socket(broker) as raw:
                await beside(flood, raw, one * times, times)

    run(scenario)


def test_finding_2_9_large_requests_that_drip_do_not_stop_ordinary_ones(start_broker: Start) -> None:
    broker = start_broker()

    async def scenario() -> None:
        client = await connect(broker)
        await client.create("t")
        async with AsyncExitStack() as ends:
            slow = [await connect(broker) for _ in range(3)]
            for peer in (client, *slow):
                ends.callback(peer.writer.transport.abort)
            for peer in slow:
                peer.writer.write((99 * MIB).to_bytes(4, "big") + bytes(66 * MIB))
            await asyncio.sleep(1.0)
            longest = 0.0
            async with witnessed(broker):
                for _ in range(10):
                    for peer in slow:
                        if not peer.writer.is_closing():  # where this test itself is too slow, the broker hangs up
                            peer.writer.write(bytes(100))
                    for _ in range(3):
                        began = read_times(broker).wall
                        row = await client.produce("t", make_batch(bytes(MIB - 1000)), acks=1)
                        assert row["error_code"] == 0
                        longest = max(longest, read_times(broker).wall - began)
                    await asyncio.sleep(0.3)
            assert longest < WAIT

    run(scenario)


@contextmanager
def slow_takers(broker: BrokerProcess, many: int, asked: bytes, step: int = 4096) -> Iterator[list[socket.socket]]:
    """Connections that ask, and take some 40 KB/s of the answer."""
    ended = threading.Event()
    takers = [open_socket(broker, receive=65536) for _ in range(many)]

    def take() -> None:
        while not ended.wait(0.1):
            for taker in takers:
                assert taker.recv(step)

    for taker in takers:
        taker.sendall(asked)
    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield takers
        assert thread.is_alive(), "a slow but honest peer was hung up on"
    finally:
        ended.set()
        thread.join()
        for taker in takers:
            taker.close()


async def fill(client: RawClient, topic: str, mib: int) -> None:
    """A topic of so many MiB."""
    await client.create(topic)
    batch = make_batch(bytes(MIB - 1000))
    for _ in range(mib):
        client.send_produce(topic, batch, acks=1)
    for _ in range(mib):
        await client.reply()


def test_finding_2_10_consumers_that_take_slowly_do_not_stop_others(start_broker: Start) -> None:
    broker = start_broker()

    async def scenario() -> None:
        client = await connect(broker)
        await fill(client, "t", 64)
        honest = [await connect(broker) for _ in range(10)]
        longest = 0.0
        with slow_takers(broker, 4, fetch_request("t", 55 * MIB)):
            await asyncio.sleep(1.0)
            async with witnessed(broker):
                for _ in range(4):
                    for one in honest:
                        began = read_times(broker).wall
                        row = await one.fetch("t", 0, max_bytes=55 * MIB)
                        assert len(row["records"]) > MIB // 2
                        longest = max(longest, read_times(broker).wall - began)
                    await asyncio.sleep(1.0)
        assert longest < WAIT
        for each in (client, *honest):
            each.writer.close()

    run(scenario)


def test_finding_2_11_many_slow_uploads_all_arrive(start_broker: Start) -> None:
    """Sixty at a time of 200 KB each, in a pool that has room for some fifteen."""
    broker = start_broker("queued.max.request.bytes=4000000")

    async def arrives(one: bytes) -> bool:
        """False: the broker hung up, as it may where this test itself sent less than a peer must."""
        peer, longest = await connect(broker), 0.0
        try:
            for at in range(0, len(one), 8192):
                peer.writer.write(one[at : at + 8192])
                await peer.writer.drain()
                began = time.monotonic()
                await asyncio.sleep(0.08)
                longest = max(longest, time.monotonic() - began)
            return int.from_bytes(await asyncio.wait_for(peer.reader.readexactly(4), 60), "big") > 0
        except (ConnectionError, asyncio.IncompleteReadError):
            assert longest > 8192 / Limits().rate, "hung up on"
            return False
        finally:
            peer.writer.close()

    async def upload(one: bytes) -> None:
        while not await arrives(one):
            pass

    async def scenario() -> None:
        client = await connect(broker)
        await client.create("t")
        one = produce_request("t", bytes(200_000))
        async with witnessed(broker):
            await asyncio.gather(*(upload(one) for _ in range(60)))
        client.writer.close()

    run(scenario)


def test_finding_2_12_answers_that_are_taken_slowly_take_little_memory(start_broker: Start) -> None:
    broker = start_broker()

    async def scenario() -> None:
        client = await connect(broker)
        await fill(client, "t", 52)
        process = psutil.Process(broker.pid)
        before = process.memory_full_info().uss
        with slow_takers(broker, 40, fetch_request("t", 50 * MIB)):
            await asyncio.sleep(2.0)
            async with witnessed(broker):
                await asyncio.sleep(1.0)
                assert process.memory_full_info().uss - before < 200 * MIB
        client.writer.close()

    run(scenario)


def test_changes_of_topics_that_wait_in_a_row_do_not_stop_those_of_others(start_broker: Start) -> None:
    """Fifty connections with sixty changes each; of their own address somebody waits for one or two of each."""
    broker = start_broker()

    async def crowd(number: int) -> None:
        peer = await connect(broker)
        for step in range(60):
            config = {"name": "retention.ms", "config_operation": 0, "value": str(1000 + step)}
            resource = {"resource_type": 2, "resource_name": f"t{number}", "configs": [config]}
            peer.send(INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False})
        for _ in range(60):
            assert (await peer.reply())["responses"][0]["error_code"] == 0
        peer.writer.close()

    async def create(client: RawClient, name: str) -> float:
        began = read_times(broker).wall
        assert (await client.create(name))["error_code"] == 0
        return read_times(broker).wall - began

    async def scenario() -> None:
        near, far = await connect(broker), await connect(broker, "127.0.0.2")
        for number in range(50):
            assert (await near.create(f"t{number}"))["error_code"] == 0
        started = time.monotonic()
        crowds = [asyncio.create_task(crowd(number)) for number in range(50)]
        await asyncio.sleep(0.3)
        of_near, of_far = await asyncio.gather(create(near, "near"), create(far, "far"))
        await asyncio.gather(*crowds)
        total = time.monotonic() - started
        assert of_far < 0.1 + total / 20  # two changes of three thousand
        assert of_near < 0.1 + total / 8  # and a hundred
        for each in (near, far):
            each.writer.close()

    run(scenario)
