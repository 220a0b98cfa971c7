"""Brokers that a producer's rounds run against: ours on files, over Redis, three that copy each other, Apache Kafka.

A client reaches each of them through a proxy, also where Metadata names it.
"""

import asyncio
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

from benchmarks.peers.kafka.broker import JVM, Kafka
from benchmarks.peers.process import PeerError
from broker_process import BrokerProcess
from faults.proxy import Fault, Proxy, start_proxy
from faults.replication.trio import Trio
from raw_connection import connect, find_leaders, read_places
from redis_server import RedisServer, find_program, free_port
from requirement import missing

TOPIC = "rounds"
PARTITIONS = 3
STILL = 1.5  # seconds of SIGSTOP: longer than a request may take here

Log = dict[int, list[tuple[int, bytes]]]  # partition -> offset and value
Meet = Callable[[int], Fault]


class Brokers(ABC):
    """One broker, or several. `bootstrap`: through the proxies. `strike`: a fault, by the round's number."""

    bootstrap = ""
    proxies: list[Proxy]

    async def strike(self, number: int) -> None:
        """kill -9 and start again, or SIGSTOP until requests have timed out."""
        if number % 2 == 0:
            await asyncio.to_thread(self.kill)
            await asyncio.to_thread(self.start)
        else:
            os.kill(self.pid, signal.SIGSTOP)
            await asyncio.sleep(STILL)
            os.kill(self.pid, signal.SIGCONT)

    async def read(self) -> Log:
        """What is there at the end, past the proxies."""
        async with connect(self.port) as client:
            return {index: await read_places(client, TOPIC, index) for index in range(PARTITIONS)}

    @property
    @abstractmethod
    def port(self) -> int:
        """Past the proxies."""

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def kill(self) -> None: ...

    @asynccontextmanager
    async def behind(self, meet: Meet, ports: dict[int, int]) -> AsyncIterator[None]:
        """A proxy for each broker: real port -> the one that clients see."""
        self.bootstrap = ",".join(f"127.0.0.1:{seen}" for seen in ports.values())
        async with AsyncExitStack() as stack:
            begun = [start_proxy(real, meet, seen) for real, seen in ports.items()]
            self.proxies = [await stack.enter_async_context(each) for each in begun]
            yield


class OwnBroker(Brokers):
    """One broker of ours over a store."""

    def __init__(self, place: Path, store: str, seen: int) -> None:
        self._process = BrokerProcess(
            place, f"num.partitions={PARTITIONS}", store=store, arguments=("--advertise", f"kafka://127.0.0.1:{seen}")
        )

    @property
    def port(self) -> int:
        return self._process.port

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        self._process.start()

    def kill(self) -> None:
        self._process.kill()


class KafkaBroker(Brokers):
    """One Apache Kafka. What it has is in the page cache at least, so it loses nothing when it is killed."""

    def __init__(self, place: Path, seen: int) -> None:
        self._kafka = SmallKafka(place, seen)

    @property
    def port(self) -> int:
        return self._kafka.port

    @property
    def pid(self) -> int:
        return self._kafka.pid

    def start(self) -> None:
        self._kafka.start()

    def kill(self) -> None:
        self._kafka.kill()


class SmallKafka(Kafka):
    """`seen`: the port that it tells clients, if another than its own. Where there is no Kafka, the test is skipped.

    Its ports stay its own until it listens there, and while it is dead: no connection of somebody else gets them.
    """

    def __init__(self, place: Path, seen: int | None = None) -> None:
        super().__init__(place, (free_port(), free_port()))
        self._seen = seen or self.port

    def prepare(self) -> None:
        super().prepare()
        file = self.directory / "server.properties"
        told = f"advertised.listeners=PLAINTEXT://127.0.0.1:{self._seen},"
        text = file.read_text().replace(f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},", told)
        file.write_text(f"{text}num.partitions={PARTITIONS}\n")

    def command(self) -> list[str]:
        small = {"-Xms1G": "-Xms256m", "-Xmx1G": "-Xmx256m", "-XX:+UseG1GC": "-XX:+UseSerialGC"}
        left = [each for each in super().command() if each not in set(JVM) - set(small)]
        return [small.get(each, each) for each in left]

    def start(self) -> Self:
        try:
            return super().start()
        except PeerError as error:
            if "is needed" not in str(error):
                raise
            missing(str(error))

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.wait()


class ThreeBrokers(Brokers):
    """Three brokers of ours that keep each other's copies; an operator appoints leaders in place of the one struck."""

    def __init__(self, place: Path, seen: dict[int, int]) -> None:
        self.trio = Trio(place)
        for identity, port in seen.items():
            broker = self.trio.brokers[identity]
            # `kafka://` is its first listener, and the others are told as they are.
            others = [word for word in broker.arguments if "://" in word]
            told = (f"kafka://127.0.0.1:{port}", *others)
            broker.arguments = (*broker.arguments, *(word for each in told for word in ("--advertise", each)))

    def start(self) -> None:
        self.trio.start(1, 2, 3)

    def kill(self) -> None:
        self.trio.__exit__()

    @property
    def port(self) -> int:
        return self.trio.brokers[1].port

    @property
    def pid(self) -> int:
        return self.trio.brokers[1].pid

    async def strike(self, number: int) -> None:
        await asyncio.to_thread(self._strike, 1 + number % 3, number % 2 == 0)

    def _strike(self, identity: int, kill: bool) -> None:
        """A broker is killed, or stopped for longer than a follower may be silent; others lead what it led.

        First all are in sync, as docs/replication.md asks of an operator: two struck at once could be all that had it.
        """
        self.trio.wait_for(TOPIC, lambda one: one.leader > 0 and len(one.isrs) == 3)
        broker = self.trio.brokers[identity]
        self.trio.away = broker
        broker.kill() if kill else broker.pause()
        others = [each for each in self.trio.brokers if each != identity]
        try:
            self.trio.appoint_registry(others)
            for index in range(PARTITIONS):
                self.trio.appoint(TOPIC, index, others[index % 2])
        finally:
            if not kill:
                broker.resume()
        if kill:
            self.trio.start(identity)
        self.trio.away = None

    async def read(self) -> Log:
        found: Log = {}
        async with connect(self.trio.brokers[1].port) as client:
            fronts = await find_leaders(client, TOPIC)
        for index, front in enumerate(fronts):
            async with connect(self._real[front]) as client:
                found[index] = await read_places(client, TOPIC, index)
        return found

    @asynccontextmanager
    async def behind(self, meet: Meet, ports: dict[int, int]) -> AsyncIterator[None]:
        self._real = {seen: real for real, seen in ports.items()}
        async with super().behind(meet, ports):
            await asyncio.to_thread(self.trio.create, TOPIC, PARTITIONS)
            yield


@asynccontextmanager
async def start_brokers(kind: str, place: Path, meet: Meet) -> AsyncIterator[Brokers]:
    """Brokers of a kind: files, redis, replicated, kafka."""
    if kind == "replicated":
        seen = {identity: free_port() for identity in (1, 2, 3)}
        three = ThreeBrokers(place, seen)
        async with _started(three), three.behind(meet, {three.trio.brokers[one].port: seen[one] for one in seen}):
            yield three
        return
    front = free_port()
    with ExitStack() as stack:
        brokers: Brokers
        if kind == "kafka":
            brokers = KafkaBroker(place / "kafka", front)
        elif kind == "redis":
            server = RedisServer(find_program("redis-distribution"), place / "redis", appendonly="yes")
            brokers = OwnBroker(place / "data", stack.enter_context(server).url, front)
        else:
            brokers = OwnBroker(place / "data", f"file:{place / 'data'}", front)
        async with _started(brokers), brokers.behind(meet, {brokers.port: front}):
            yield brokers


@asynccontextmanager
async def _started(brokers: Brokers) -> AsyncIterator[None]:
    try:
        await asyncio.to_thread(brokers.start)
        yield
    finally:
        await asyncio.to_thread(brokers.kill)
