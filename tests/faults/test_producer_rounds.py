"""Our producer while its brokers are killed, stopped, cut off, held up, or have no room; a history judges it.

What it calls delivered is there, where it says and in order; what it calls not written is not; nothing is there twice.
"""

import asyncio
import os
from pathlib import Path
from random import Random

import pytest

from broker_process import BrokerProcess
from faults.full_disk import fill, make_room
from faults.producer_brokers import PARTITIONS, TOPIC, Log, start_brokers
from faults.proxy import Fault
from history import History, Sent
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Delivery, Outcome
from producer_leftovers import run_clean
from raw_connection import connect, read_places

# The suite has ten of them; `make producer-rounds` as many for each kind as KORVET_TEST_PRODUCER_ROUNDS says.
ROUNDS = {"files": 3, "redis": 3, "replicated": 2, "kafka": 2}
LONG = os.environ.get("KORVET_TEST_PRODUCER_ROUNDS")
MOST = 50_000  # messages that are open at a time: a broker may take long to start on a busy machine
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
            if self._producer.metrics().open > MOST:
                await asyncio.sleep(0.05)
                continue
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

    def judge(self, log: Log) -> None:
        self.history.check(log, never=True)
        assert len(self.history.acknowledged) >= STEP
        print(f"{len(self.history.sent)} sent, {len(self.history.acknowledged)} delivered, "
              f"{len(self.history.refused)} failed, the others unknown")  # fmt: skip


@pytest.mark.timeout(600 + 120 * int(LONG or 0))
@pytest.mark.parametrize("kind", ROUNDS)
def test_rounds(kind: str, tmp_path: Path) -> None:
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
        rounds = int(LONG or ROUNDS[kind])
        async with start_brokers(kind, tmp_path, meet) as brokers:
            async with AsyncProducer(brokers.bootstrap, **SETTINGS) as producer:
                writer = Writer(producer, TOPIC)
                writing = asyncio.create_task(writer.run())
                for number in range(rounds):
                    await writer.progress()
                    await brokers.strike(number)
                await writer.progress()
                await writer.stop()
                await writing
            assert sum(proxy.accepted for proxy in brokers.proxies) > rounds
            writer.judge(await brokers.read())
        for each in holding:
            each.cancel()

    run_clean(work)


def test_a_full_disk(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(1_500_000))

    async def work(broker: BrokerProcess) -> None:
        async with AsyncProducer(broker.bootstrap, buffer_memory=20_000_000, **SETTINGS) as producer:
            writer = Writer(producer, TOPIC, padding=2000)
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
        async with connect(broker.port) as client:
            writer.judge({index: await read_places(client, TOPIC, index) for index in range(PARTITIONS)})

    with BrokerProcess(small_disk / "data", f"num.partitions={PARTITIONS}") as broker:
        run_clean(lambda: work(broker))
