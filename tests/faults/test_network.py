"""A network that slices, cuts and loses (reliability F22-F25): batches whole or not at all, repetitions known."""

import asyncio
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from broker_process import BrokerProcess
from counts import note_values
from faults.proxy import Fault, start_proxy
from faults.redis.load import at_work
from kafka_server import METADATA, PRODUCE, frame, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_log, reset, start_producer
from redis_server import free_port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("network") / "data") as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex[:12]}"


def produce_request(topic: str, records: bytes | bytearray) -> dict[str, object]:
    partition = {"index": 0, "records": records}
    return {"acks": -1, "timeout_ms": 10_000, "topic_data": [{"name": topic, "partition_data": [partition]}]}


def test_a_request_cut_after_any_byte_is_applied_whole_or_not_at_all(broker: BrokerProcess, topic: str) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create(topic)
            whole = frame(client.request(PRODUCE, 9, produce_request(topic, make_batch(b"0000", b"second"))))
            for cut in range(len(whole) + 1):
                payload = client.request(PRODUCE, 9, produce_request(topic, make_batch(b"%04d" % cut, b"second")))
                victim = socket.create_connection(("127.0.0.1", broker.port))
                victim.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends with RST
                victim.sendall(frame(payload)[:cut])
                await asyncio.sleep(0.002 * (cut % 2))  # half of them are cut while the broker looks at them
                victim.close()
            assert len(frame(payload)) == len(whole)
            async with connect(broker.port) as last:  # let in after all the others
                assert (await last.produce(topic, make_batch(b"after")))["error_code"] == 0
            values = await read_log(client, topic)
        values.remove(b"after")
        assert values in ([], [b"%04d" % len(whole), b"second"])  # a reset may overtake a whole request as well

    with at_work(broker, f"{topic}-beside"):
        run(scenario)


def test_a_request_that_arrives_before_the_reset_is_stored_once(broker: BrokerProcess, topic: str) -> None:
    """The proxy lets the last byte arrive, and loses the answer (F23): a retry is answered with the first offset."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create(topic)
            await client.produce(topic, make_batch(b"before"))
            producer = await start_producer(client)
            batches = [bytes(make_batch(b"%d" % n, b"x", producer=(*producer, 2 * n))) for n in range(5)]
            held = Fault(answers=asyncio.Event())
            async with start_proxy(broker.port, lambda _: held) as proxy, connect(proxy.port) as lost:
                for batch in batches:
                    lost.send_produce(topic, bytes(batch))
                await proxy.answered.wait()
                # Behind the answer that was seen the others may still be under way; their order is kept anyhow.
                reset(lost.writer)
            for _ in range(2):
                rows = [await client.produce(topic, bytearray(batch)) for batch in batches]
                assert [(row["error_code"], row["base_offset"]) for row in rows] == [(0, 1 + 2 * n) for n in range(5)]
            row = await client.produce(topic, make_batch(b"gap", producer=(*producer, 11)))
            assert row["error_code"] == CODES["OUT_OF_ORDER_SEQUENCE_NUMBER"]
            row = await client.produce(topic, make_batch(b"next", producer=(*producer, 10)))
            assert (row["error_code"], row["base_offset"]) == (0, 11)
            assert len(await read_log(client, topic)) == 12

    run(scenario)


def test_an_answer_that_comes_after_the_retry_says_the_same(broker: BrokerProcess, topic: str) -> None:
    """F24: the client gave up, sent the batch again on another connection, and then hears from the first."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create(topic)
            producer = await start_producer(client)
            batch = bytes(make_batch(b"one", b"two", producer=(*producer, 0)))
            held = Fault(answers=asyncio.Event())
            assert held.answers is not None
            async with start_proxy(broker.port, lambda _: held) as proxy, connect(proxy.port) as late:
                late.send_produce(topic, bytearray(batch))
                await proxy.answered.wait()
                again = await client.produce(topic, bytearray(batch))
                held.answers.set()
                row = (await late.reply())["responses"][0]["partition_responses"][0]
            assert (again["error_code"], again["base_offset"]) == (row["error_code"], row["base_offset"]) == (0, 0)
            values = await read_log(client, topic)
            note_values([b"one", b"two"], values)
            assert values == [b"one", b"two"]

    run(scenario)


def test_byte_by_byte_both_ways(broker: BrokerProcess, topic: str) -> None:
    """F25; somebody else is served between any two bytes."""

    async def scenario() -> None:
        async with (
            start_proxy(broker.port, lambda _: Fault(slice=1)) as proxy,
            connect(proxy.port) as slow,
            connect(broker.port) as other,
        ):
            await slow.create(topic)
            for number in range(3):
                slow.send_produce(topic, make_batch(b"%d" % number * 1000))
            slow.send_fetch(topic, 0, max_wait_ms=60_000)
            for _ in range(20):
                assert (await other.ask(METADATA, 9, topics=[{"name": topic}]))["topics"][0]["error_code"] == 0
            for number in range(3):
                row = (await slow.reply())["responses"][0]["partition_responses"][0]
                assert (row["error_code"], row["base_offset"]) == (0, number)
            await slow.reply()
            stored = [b"%d" % number * 1000 for number in range(3)]
            values = await read_log(slow, topic)
            note_values(stored, values)
            assert values == stored

    run(scenario)


def test_a_real_client_on_a_network_that_cuts(tmp_path: Path) -> None:
    """An idempotent producer whose every connection ends after some random bytes loses, doubles and swaps nothing."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    refused: list[str] = []
    port = free_port()

    def fault(number: int) -> Fault:
        # Ever longer, so that it ends; a client needs some 500 bytes to find out who it speaks with.
        most = 1_000 + 500 * number
        up, down = chance.randrange(100, most), chance.randrange(100, most)
        return Fault(slice=chance.choice((7, 100, 1 << 16)), cut_up=up, cut_down=down)

    def write(port: int) -> None:
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{port}",
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "message.timeout.ms": 200_000,
                "reconnect.backoff.ms": 1,
                "reconnect.backoff.max.ms": 20,
                "retry.backoff.ms": 5,
                "retry.backoff.max.ms": 20,
                "log_level": 0,
            }
        )
        for number in range(2_000):
            producer.produce("cut", b"%d" % number, on_delivery=lambda error, _: error and refused.append(str(error)))
            producer.poll(0)
        assert producer.flush(200) == 0

    async def scenario() -> None:
        advertised = ("--advertise", f"kafka://127.0.0.1:{port}")
        with BrokerProcess(tmp_path / "data", arguments=advertised) as broker:
            async with connect(broker.port) as client:
                await client.create("cut")
                async with start_proxy(broker.port, fault, port) as proxy:
                    await asyncio.to_thread(write, port)
                assert refused == []
                assert proxy.accepted > 5
                stored = [b"%d" % number for number in range(2_000)]
                values = await read_log(client, "cut")
                note_values(stored, values)
                assert values == stored
                print(f"{proxy.accepted} connections")

    run(scenario)
