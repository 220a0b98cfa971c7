"""Stopping a broker at work: SIGTERM finishes and keeps everything, a second one is at once, SIGSTOP is a pause."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker_process import BrokerProcess
from counts import note_numbers
from faults.conftest import Flushes
from kafka_server import make_batch, run
from raw_connection import connect, read_log


class Sender(threading.Thread):
    """An idempotent producer that writes numbers to one topic until it is told that it is enough."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self.acknowledged = 0
        self.refused: list[str] = []
        self._topic = topic
        self._enough = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "socket.timeout.ms": 1000,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 10,
                "retry.backoff.max.ms": 50,
                "message.timeout.ms": 200_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        while not self._enough.is_set():
            self._producer.produce(self._topic, b"%d" % self.sent, on_delivery=self._note)
            self.sent += 1
            self._producer.poll(0 if len(self._producer) < 1_000 else 0.05)
        self._producer.flush(200)

    def _note(self, error: object, _: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.refused.append(str(error))

    def wait_for(self, more: int) -> None:
        """Until so many more are acknowledged."""
        target, deadline = self.acknowledged + more, time.monotonic() + 200
        while self.acknowledged < target:
            assert time.monotonic() < deadline, "the producer makes no progress"
            time.sleep(0.01)

    def finish(self) -> None:
        self._enough.set()
        self.join(210)
        assert self.refused == []
        assert self.acknowledged == self.sent


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as running:
        yield running


def check_log(broker: BrokerProcess, sender: Sender) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            found = await read_log(client, "t")
        note_numbers(range(sender.acknowledged), [int(value) for value in found])
        assert found == [b"%d" % number for number in range(sender.sent)]

    run(scenario)


def test_sigterm_under_load_keeps_every_record(broker: BrokerProcess) -> None:
    sender = Sender(broker.bootstrap, "t")
    sender.start()
    for _ in range(3):
        sender.wait_for(500)
        assert broker.stop() == 0
        assert (Path(broker.store.removeprefix("file:")) / "checkpoint").exists()  # a clean stop, no recovery after it
        broker.start()
    sender.wait_for(500)
    sender.finish()
    check_log(broker, sender)
    assert "Traceback" not in "".join(broker.log)


def test_sigterm_answers_long_polls_and_hangs_up(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as consumer, connect(broker.port) as client, connect(broker.port) as idle:
            await client.create("t")
            await client.produce("t", make_batch(b"value"))
            for _ in range(2):
                consumer.send_fetch("t", 1, max_wait_ms=60_000)
            await client.fetch("t", 0)  # by now the other connection's fetches wait too, or are about to
            stopping = asyncio.create_task(asyncio.to_thread(broker.stop))
            for _ in range(2):
                row = (await consumer.reply())["responses"][0]["partitions"][0]
                assert (row["error_code"], row["high_watermark"], len(row["records"])) == (0, 1, 0)
            for one in (consumer, client, idle):
                assert await one.ended() == b""
            assert await stopping == 0

    run(scenario)


def test_sigterm_finishes_what_is_under_way_and_a_second_one_does_not(tmp_path: Path, flushes: Flushes) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client, connect(broker.port) as other:
            await client.create("t")
            await client.produce("t", make_batch(b"first"))
            flushes.hang()
            client.send_produce("t", make_batch(b"under way"))
            while (await other.produce("t", make_batch(b"behind"), acks=1))["base_offset"] == at[heal]:
                at[heal] += 1  # the other connection's request was faster
            broker.process.send_signal(signal.SIGTERM)
            assert await other.ended() == b""  # idle, so it goes at once, while the first waits for the disk
            assert broker.process.poll() is None
            if heal:
                flushes.heal()
                row = (await client.reply())["responses"][0]["partition_responses"][0]
                assert (row["error_code"], row["base_offset"]) == (0, at[heal])
                assert await asyncio.to_thread(broker.process.wait, 120) == 0
            else:
                broker.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(broker.process.wait, 15) == 1  # the first one would wait for 20 s
                assert await client.ended() == b""  # no answer: nothing was promised
                flushes.heal()

    async def afterwards() -> None:
        async with connect(broker.port) as client:
            log = await read_log(client, "t")
            assert (log[0], log[at[heal]]) == (b"first", b"under way")

    at = {True: 1, False: 1}  # the offset of what is under way
    for heal in (True, False):
        with BrokerProcess(tmp_path / f"data-{heal}", before=flushes.before) as broker:
            assert broker.process is not None
            run(scenario)
            broker.start()
            run(afterwards)
        said = any("told a second time to stop: this process ends at once" in line for line in broker.log)
        assert said == (not heal), "only a second signal is told"


def test_sigstop_is_a_pause(broker: BrokerProcess) -> None:
    """Clients time out, connect again and send again; when the broker wakes it has both, and keeps one."""
    sender = Sender(broker.bootstrap, "t")
    sender.start()
    for _ in range(2):
        sender.wait_for(300)
        broker.pause()
        time.sleep(1.5)  # longer than the producer's socket.timeout.ms: this is the fault, nothing is waited for
        broker.resume()
    sender.wait_for(300)
    sender.finish()
    check_log(broker, sender)
