"""A broker that clients of Kafka 0.7 speak to, for the tests of their protocol."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from broker_process import BrokerProcess
from kafka_server import METADATA, RawClient
from korvet_reference.legacy_client import FetchError, LegacyClient
from legacy_vectors import EXCHANGES
from raw_connection import connect

SETTINGS = (
    "controller.mutation.rate=1000000",
    "num.partitions=2",
    "topic.partition.count.map=wide:5",
    "message.max.bytes=1000",
    "log.segment.bytes=1024",
)
PATIENCE = 60.0  # seconds for anything at all


class LegacyBroker:
    """A broker process with both listeners. `topic()`: a name that no other test uses."""

    def __init__(self, process: BrokerProcess, port: int) -> None:
        self.process = process
        self.port = port
        self._number = 0

    def topic(self) -> str:
        self._number += 1
        return f"t{self._number}"

    def connect(self) -> LegacyClient:
        return LegacyClient("127.0.0.1", self.port, PATIENCE)

    def kafka(self, scenario: Callable[[RawClient], Awaitable[None]]) -> None:
        """Run `scenario` with a client of Kafka's listener."""

        async def run() -> None:
            async with asyncio.timeout(PATIENCE), connect(self.process.port) as client:
                await scenario(client)

        asyncio.run(run())

    def exists(self, topic: str) -> bool:
        """Whether there is such a topic, by a client of today."""
        found = []

        async def scenario(kafka: RawClient) -> None:
            answer = await kafka.ask(METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=False)
            found.append(answer["topics"][0]["error_code"] == 0)

        self.kafka(scenario)
        return found == [True]

    def closes(self, request: Callable[[LegacyClient], object]) -> bool:
        """Whether the broker closes the connection on this, without a byte of an answer."""
        with self.connect() as client:
            try:
                request(client)
                client.socket.sendall(EXCHANGES[7].sent)  # a FETCH: answered if the connection is still open
                return client.socket.recv(1 << 16) == b""
            except ConnectionError:  # it closed while bytes were on their way to it
                return True


def renamed(data: bytes, suffix: bytes) -> bytes:
    """The same request of topics with other names of the same length, so that the broker does not know them yet."""
    for name in (b"testgz", b"test2", b"test", b"nope"):
        marked = struct.pack(">h", len(name)) + name
        data = data.replace(marked, marked[:-2] + suffix)
    return data


def refusal(call: Callable[[], object]) -> int:
    with pytest.raises(FetchError) as caught:
        call()
    return caught.value.code
