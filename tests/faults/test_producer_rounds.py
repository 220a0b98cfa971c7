"""Our producer while its broker is killed, stopped, cut off, held up, or has no room: ten rounds, judged by a history.

What it calls delivered is there, where it says and in order; what it calls not written is not; nothing is there twice.
`KORVET_TEST_PRODUCER_ROUNDS=200` runs as many for each store.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from broker_process import BrokerProcess
from faults.full_disk import fill, make_room
from faults.proxy import Fault, start_proxy
from history import History, Sent
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Delivery, Outcome
from producer_leftovers import run_clean
from raw_connection import connect, read_places
from redis_server import RedisServer, find_program, free_port

ROUNDS = int(os.environ.get("KORVET_TEST_PRODUCER_ROUNDS", "5"))  # for each of two stores
PARTITIONS = 3
STEP = 60  # messages delivered before a fault, and again after it
PATIENCE = 300.0  # seconds for what happens some time
SETTINGS = {"request_timeout_ms": 1000, "retry_backoff_max_ms": 200, "batch_num_messages": 7}


class Writer:
    """Sends `w:number` to each partition in turn until `stop`; what becomes of each is in `history`."""

    def __init__(self, producer: AsyncProducer, topic: str, padding: int = 0) -> None:
        self.history = History()
        self._producer = producer
        self._topic = topic
        self._headers = [("padding", bytes(padding))] if padding else ()
        self._sent: list[tuple[Sent, Delivery]] = []
        self._running = True

    async def run(self) -> None:
        while self._running:
            for _ in range(PARTITIONS):
                sent = Sent("w", len(self._sent))
                partition = sent.number % PARTITIONS
                value = f"w:{sent.number}".encode()
                delivery = self._producer.send(self._topic, value, headers=self._headers, partition=partition)
                self.history.note_sent(sent, partition, once=True)
                self._sent.append((sent, delivery))
            await asyncio.sleep(0.002)

    async def progress(self) -> None:
        """Wait until `STEP` more messages are delivered."""
        target = self._producer.metrics().delivered + STEP
        async with asyncio.timeout(PATIENCE):
            while self._producer.metrics().delivered < target:
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._running = False
        async with asyncio.timeout(PATIENCE):
            await self._producer.flush()
        for sent, delivery in self._sent:
            assert delivery.done()
            if delivery.outcome is Outcome.DELIVERED:
                found = delivery.result()
                self.history.note_acknowledged(sent, (found.partition, found.offset))
            elif delivery.outcome is Outcome.NOT_WRITTEN:
                self.history.note_refused(sent, str(delivery.exception()))

    async def judge(self, port: int) -> None:
        async with connect(port) as client:
            log = {index: await read_places(client, self._topic, index) for index in range(PARTITIONS)}
        self.history.check(log, never=True)
        assert len(self.history.acknowledged) >= STEP


@pytest.fixture(params=["files", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "files":
        yield f"file:{tmp_path / 'data'}"
        return
    with RedisServer(find_program("redis-distribution"), tmp_path / "redis", appendonly="yes") as server:
        yield server.url


async def strike(broker: BrokerProcess, number: int) -> None:
    """kill -9 and start again, or SIGSTOP until requests have timed out."""
    if number % 2 == 0:
        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)
    else:
        os.kill(broker.pid, signal.SIGSTOP)
        await asyncio.sleep(1.5)
        os.kill(broker.pid, signal.SIGCONT)


def test_rounds(store: str, tmp_path: Path) -> None:
    random = Random(19)
    holding: list[asyncio.TimerHandle] = []

    def meet(number: int) -> Fault:
        """Each connection is cut after some bytes, in one direction or the other; every third is held up first."""
        held = None
        if number % 3 == 0:
            held = asyncio.Event()
            holding.append(asyncio.get_running_loop().call_later(0.3, held.set))
        return Fault(cut_up=random.randint(20_000, 200_000), cut_down=random.randint(1_000, 20_000), answers=held)

    async def work() -> None:
        port = free_port()
        arguments = ("--advertise", f"kafka://127.0.0.1:{port}")
        broker = BrokerProcess(tmp_path / "data", f"num.partitions={PARTITIONS}", store=store, arguments=arguments)
        await asyncio.to_thread(broker.start)
        try:
            async with start_proxy(broker.port, meet, port) as proxy:
                async with AsyncProducer(f"127.0.0.1:{port}", **SETTINGS) as producer:
                    writer = Writer(producer, "rounds")
                    writing = asyncio.create_task(writer.run())
                    for number in range(ROUNDS):
                        await writer.progress()
                        await strike(broker, number)
                    await writer.progress()
                    await writer.stop()
                    await writing
                assert proxy.accepted > ROUNDS
            await writer.judge(broker.port)
        finally:
            await asyncio.to_thread(broker.stop)
            for each in holding:
                each.cancel()

    run_clean(work)


def test_a_full_disk(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(1_500_000))

    async def work(broker: BrokerProcess) -> None:
        async with AsyncProducer(broker.bootstrap, buffer_memory=20_000_000, **SETTINGS) as producer:
            writer = Writer(producer, "rounds", padding=2000)
            writing = asyncio.create_task(writer.run())
            await writer.progress()
            fill(filler)
            async with asyncio.timeout(PATIENCE):
                while not producer.metrics().retries:
                    await asyncio.sleep(0.01)
            make_room(filler)
            await writer.progress()
            await writer.stop()
            await writing
        await writer.judge(broker.port)

    with BrokerProcess(small_disk / "data", f"num.partitions={PARTITIONS}") as broker:
        run_clean(lambda: work(broker))
