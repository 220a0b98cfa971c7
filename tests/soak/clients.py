"""Clients of a soak beside `Load`: a probe that measures waits, a group of consumers, a client of Kafka 0.7."""

import asyncio
import time
from asyncio import IncompleteReadError
from collections.abc import Sequence

from confluent_kafka import Consumer

from broker_process import BrokerProcess
from client_thread import ClientThread
from faults.redis.load import PATIENT
from journal import Sent, read_value
from kafka_server import make_batch
from korvet_reference.legacy_client import EARLIEST, LegacyClient, encode_message, read_messages
from raw_connection import connect

_BETWEEN = 0.1  # seconds between two probes
_PATIENCE = 10.0  # seconds until a probe asks elsewhere


class Probe(ClientThread):
    """Sends a record to the topic `t`, again until it is taken. `waits`: when each began (monotonic), and seconds."""

    def __init__(self, brokers: Sequence[BrokerProcess]) -> None:
        super().__init__("probe")
        self.waits: list[tuple[float, float]] = []
        self._brokers = brokers

    def work(self) -> None:
        asyncio.run(self._probe())

    async def _probe(self) -> None:
        while not self.enough.is_set():
            began = time.monotonic()
            if await self._send():
                self.waits.append((began, time.monotonic() - began))
            await asyncio.sleep(_BETWEEN)

    async def _send(self) -> bool:
        while not self.enough.is_set():
            for broker in self._brokers:
                try:
                    async with asyncio.timeout(_PATIENCE), connect(broker.port) as client:
                        row = await client.produce("t", make_batch(b"probe"))
                except (OSError, IncompleteReadError):  # TimeoutError is one of the first
                    continue
                if not row["error_code"]:
                    return True
            await asyncio.sleep(0.02)
        return False


class GroupMember(ClientThread):
    """A member of a group that reads a topic. `seen`: shared by the members."""

    def __init__(self, bootstrap: str, topic: str, seen: set[Sent]) -> None:
        super().__init__("member")
        self._brokers, self._topic, self._seen = bootstrap, topic, seen

    def work(self) -> None:
        config = {"bootstrap.servers": self._brokers, "group.id": self._topic, "auto.offset.reset": "earliest"}
        consumer = Consumer({**PATIENT, **config})
        consumer.subscribe([self._topic])
        while not self.enough.is_set():
            for message in consumer.consume(500, timeout=0.1):
                if message.error() is None:
                    self._seen.add(read_value(message.value()))
        consumer.close()


class OldClient(ClientThread):
    """Writes numbers by the protocol of 0.7, which acknowledges nothing, and reads at the end what is there."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__("old")
        self._port, self._topic, self.sent = port, topic, 0

    def work(self) -> None:
        while not self.enough.is_set():
            try:
                with LegacyClient("127.0.0.1", self._port, _PATIENCE) as client:
                    while not self.enough.is_set():
                        client.produce(self._topic, 0, encode_message(b"%d" % self.sent))
                        self.sent += 1
                        time.sleep(0.01)
            except OSError:
                time.sleep(0.05)

    def check(self) -> int:
        """How many messages are there: numbers that were sent, rising, and some at least. Raises `AssertionError`."""
        found: list[int] = []
        with LegacyClient("127.0.0.1", self._port) as client:
            (at,) = client.offsets(self._topic, 0, EARLIEST)
            while messages := read_messages(client.fetch(self._topic, 0, at), at):
                found += [int(message.payload) for message in messages]
                at = messages[-1].following
        assert found == sorted(set(found)), f"{self._topic}: what the old client wrote is doubled or out of order"
        assert found, f"{self._topic}: nothing is there of {self.sent} messages that the old client wrote"
        assert found[-1] <= self.sent
        return len(found)
