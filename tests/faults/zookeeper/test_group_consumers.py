"""Two brokers, ten partitions, three consumers of a group of Kafka 0.7, which find all of it in a real ZooKeeper.

Over files and over Redis; with our reference client, and with Jafka's `ConsumerConnector`, which is 0.7's own carried
over to Java.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from broker_process import BrokerProcess
from compat.drivers import command
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_reference.legacy_client import LegacyClient, encode_message
from korvet_reference.legacy_group import assign
from redis_server import RedisServer, find_program, free_port
from zookeeper_server import until

LOG = 300  # lines of a consumer's log that are kept
TOPIC, GROUP = "clicks", "g"
PARTITIONS = [f"{broker}-{index}" for broker in (0, 1) for index in range(5)]


class Consumer:
    """A member in a process of its own. `lines`: what it printed, each with a message at its end; `errors`: its log."""

    def __init__(self, kind: str, where: ConnectString, member: str) -> None:
        self.member = member
        self.lines: list[str] = []
        self.errors: deque[str] = deque(maxlen=LOG)
        if kind == "jafka":
            line, folder = command("jafka", "consume", str(where), GROUP, TOPIC, member.removeprefix(f"{GROUP}_"))
        else:
            line = [sys.executable, "-m", "korvet_reference.legacy_group", str(where), GROUP, member, TOPIC]
            folder = Path.cwd()
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(line, cwd=folder, env=environment, text=True, stdout=pipe, stderr=pipe)
        self._following = [
            threading.Thread(target=self._follow, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for thread in self._following:
            thread.start()

    def _follow(self, stream: IO[str], into: list[str] | deque[str]) -> None:
        with stream as lines:
            into.extend(lines)

    def end(self, how: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)
        self.process.wait(60)
        for thread in self._following:
            thread.join(60)

    def tell(self) -> None:
        """Print its log, which pytest shows where the test fails."""
        print(f"-- {self.member}\n{''.join(self.errors)}")


class World:
    """Brokers, consumers of one kind, and what was produced."""

    def __init__(
        self, kind: str, where: ConnectString, eyes: KazooClient, stores: list[str | None], data: Path
    ) -> None:
        self.kind, self.where, self.eyes = kind, where, eyes
        self.group = f"{where.chroot}/consumers/{GROUP}"
        self.ports = [free_port(), free_port()]
        self.brokers = [self._broker(data, number, store) for number, store in enumerate(stores)]
        self.consumers: dict[str, Consumer] = {}
        self.ended: list[Consumer] = []
        self.sent: set[str] = set()

    def _broker(self, data: Path, number: int, store: str | None) -> BrokerProcess:
        arguments = ("--listen", f"legacy://127.0.0.1:{self.ports[number]}", "--zookeeper", str(self.where))
        settings = (f"node.id={number}", "num.partitions=5", "zookeeper.session.timeout.ms=4000")
        return BrokerProcess(data / str(number), *settings, store=store, arguments=arguments)

    def produce(self) -> None:
        """Three messages more in each partition."""
        for broker, port in enumerate(self.ports):
            with LegacyClient("127.0.0.1", port) as client:
                for index in range(5):
                    texts = [f"{broker}-{index}-{len(self.sent)}-{number}" for number in range(3)]
                    client.produce(TOPIC, index, b"".join(encode_message(text.encode()) for text in texts))
                    client.offsets(TOPIC, index)  # what was produced is there
                    self.sent |= set(texts)

    def join(self, member: str) -> None:
        self.consumers[member] = Consumer(self.kind, self.where, member)

    def leave(self, member: str, how: int = signal.SIGTERM) -> None:
        consumer = self.consumers.pop(member)
        consumer.end(how)
        self.ended.append(consumer)

    def children(self, path: str) -> list[str]:
        with contextlib.suppress(NoNodeError):
            return sorted(self.eyes.get_children(path))
        return []

    def values(self, path: str) -> dict[str, str]:
        """The children of a node, with what is written there."""
        found = {}
        for name in self.children(path):
            with contextlib.suppress(NoNodeError):
                found[name] = self.eyes.get(f"{path}/{name}")[0].decode()
        return found

    def owners(self) -> dict[str, str]:
        return self.values(f"{self.group}/owners/{TOPIC}")

    def positions(self) -> dict[str, int]:
        found = self.values(f"{self.group}/offsets/{TOPIC}")
        return {partition: int(value) for partition, value in found.items() if value}

    def ends(self) -> dict[str, int]:
        found = {}
        for broker, port in enumerate(self.ports):
            with LegacyClient("127.0.0.1", port) as client:
                for index in range(5):
                    (found[f"{broker}-{index}"],) = client.offsets(TOPIC, index)
        return found

    def found(self) -> set[str]:
        consumers = (*self.ended, *self.consumers.values())
        return {line.split()[-1] for consumer in consumers for line in list(consumer.lines)}

    async def settle(self) -> dict[str, str]:
        """All partitions are owned as is computed, every message was given to somebody, all positions are the ends.

        Returns the owners as they were seen: consumers that are told twice of a change let go of everything once more.
        """
        given = assign(PARTITIONS, [f"{member}-0" for member in self.consumers])
        wanted = {partition: thread for thread, mine in given.items() for partition in mine}
        await until(lambda: self.children(f"{self.group}/ids") == sorted(self.consumers))
        await until(lambda: self.owners() == wanted)
        await until(lambda: self.found() >= self.sent)
        assert self.found() == self.sent
        ends = await asyncio.to_thread(self.ends)
        await until(lambda: self.positions() == ends)
        return wanted


@pytest.fixture(params=["files", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str | None]]:
    """A store of its own for each broker."""
    if request.param == "files":
        yield [None, None]
    else:
        program = find_program("redis-server")
        with RedisServer(program, tmp_path / "r0") as first, RedisServer(program, tmp_path / "r1") as second:
            yield [first.url, second.url]


@pytest.fixture(params=["reference", "jafka"])
def world(
    request: pytest.FixtureRequest,
    where: ConnectString,
    eyes: KazooClient,
    stores: list[str | None],
    tmp_path: Path,
) -> Iterator[World]:
    made = World(request.param, where, eyes, stores, tmp_path)
    with made.brokers[0], made.brokers[1]:
        try:
            yield made
        finally:
            for consumer in made.consumers.values():
                consumer.end(signal.SIGKILL)
            for consumer in (*made.ended, *made.consumers.values()):
                consumer.tell()


@pytest.mark.timeout(900)
async def test_three_consumers_of_a_group_share_what_two_brokers_have(world: World) -> None:
    await asyncio.to_thread(world.produce)
    for member in ("g_a", "g_b", "g_c"):
        world.join(member)
    owners = await world.settle()
    assert sorted(list(owners.values()).count(f"g_{name}-0") for name in "abc") == [3, 3, 4]
    (registration,) = {json.dumps(json.loads(value)) for value in world.values(f"{world.group}/ids").values()}
    assert registration == json.dumps({TOPIC: 1})

    world.leave("g_b")
    await asyncio.to_thread(world.produce)
    await world.settle()
    world.join("g_d")
    await world.settle()

    world.leave("g_a", signal.SIGKILL)
    await asyncio.to_thread(world.produce)
    await world.settle()

    world.brokers[1].stop()
    world.brokers[1].start()
    await asyncio.to_thread(world.produce)
    await world.settle()
    world.brokers[0].kill()
    await until(lambda: world.children(f"{world.where.chroot}/brokers/ids") == ["1"])  # until then its id is taken
    world.brokers[0].start()
    await asyncio.to_thread(world.produce)
    await world.settle()

    asleep = world.consumers["g_c"].process
    os.kill(asleep.pid, signal.SIGSTOP)
    await until(lambda: world.children(f"{world.group}/ids") == ["g_d"])  # its session has expired
    await until(lambda: set(world.owners().values()) == {"g_d-0"})
    await asyncio.to_thread(world.produce)
    os.kill(asleep.pid, signal.SIGCONT)
    await world.settle()
    if world.kind == "reference":  # it tells where each message was, and the position behind it
        check_places(world)


def check_places(world: World) -> None:
    ends = world.ends()
    for consumer in (*world.ended, *world.consumers.values()):
        for line in consumer.lines:
            partition, offset, text = line.split()
            assert 0 < int(offset) <= ends[partition]
            assert text.startswith(f"{partition}-")


def test_section_10_who_gets_what_is_by_names_as_strings() -> None:
    partitions = ["0-10", "0-2", "0-0", "1-0", "0-1", "1-1", "0-3", "0-4", "0-5", "0-6"]
    assert assign(partitions, ["g_b-0", "g_c-0", "g_a-0"]) == {
        "g_a-0": ["0-0", "0-1", "0-10", "0-2"],
        "g_b-0": ["0-3", "0-4", "0-5"],
        "g_c-0": ["0-6", "1-0", "1-1"],
    }
    assert assign(["0-0"], ["b", "a"]) == {"a": ["0-0"], "b": []}
