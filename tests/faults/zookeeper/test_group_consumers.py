"""Two brokers, ten partitions, three consumers of a group of Kafka 0.7, which find all of it in a real ZooKeeper."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from broker_process import BrokerProcess
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_reference.legacy_client import LegacyClient, encode_message
from korvet_reference.legacy_group import assign
from redis_server import free_port
from zookeeper_server import until

TOPIC, GROUP = "clicks", "g"
PARTITIONS = [f"{broker}-{index}" for broker in (0, 1) for index in range(5)]


class Consumer:
    """A member in a process of its own; `found`: each message, with its partition and the position behind it."""

    def __init__(self, where: ConnectString, member: str) -> None:
        self.found: list[tuple[str, int, str]] = []
        command = [sys.executable, "-m", "korvet_reference.legacy_group", str(where), GROUP, member, TOPIC]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                partition, offset, payload = line.split()
                self.found.append((partition, int(offset), payload))

    def end(self, how: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)
        self.process.wait(60)


class World:
    """Brokers, consumers, and what was produced."""

    def __init__(self, where: ConnectString, eyes: KazooClient, directory: Path) -> None:
        self.where, self.eyes = where, eyes
        self.ports = [free_port(), free_port()]
        self.brokers = [self._broker(directory, number) for number in (0, 1)]
        self.consumers: dict[str, Consumer] = {}
        self.ended: list[Consumer] = []
        self.sent: set[str] = set()

    def _broker(self, directory: Path, number: int) -> BrokerProcess:
        arguments = ("--listen", f"legacy://127.0.0.1:{self.ports[number]}", "--zookeeper", str(self.where))
        settings = (f"node.id={number}", "num.partitions=5", "zookeeper.session.timeout.ms=4000")
        return BrokerProcess(directory / str(number), *settings, arguments=arguments)

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
        self.consumers[member] = Consumer(self.where, member)

    def leave(self, member: str, how: int = signal.SIGTERM) -> None:
        consumer = self.consumers.pop(member)
        consumer.end(how)
        self.ended.append(consumer)

    def owners(self) -> dict[str, str]:
        path, found = f"{self.where.chroot}/consumers/{GROUP}/owners/{TOPIC}", {}
        with contextlib.suppress(NoNodeError):
            for partition in self.eyes.get_children(path):
                found[partition] = self.eyes.get(f"{path}/{partition}")[0].decode()
        return found

    def positions(self) -> dict[str, int]:
        path, found = f"{self.where.chroot}/consumers/{GROUP}/offsets/{TOPIC}", {}
        with contextlib.suppress(NoNodeError):
            for partition in self.eyes.get_children(path):
                with contextlib.suppress(NoNodeError, ValueError):
                    found[partition] = int(self.eyes.get(f"{path}/{partition}")[0])
        return found

    def ends(self) -> dict[str, int]:
        found = {}
        for broker, port in enumerate(self.ports):
            with LegacyClient("127.0.0.1", port) as client:
                for index in range(5):
                    (found[f"{broker}-{index}"],) = client.offsets(TOPIC, index)
        return found

    async def settle(self) -> None:
        """All partitions are owned as is computed, every message was given to somebody, all positions are the ends."""
        given = assign(PARTITIONS, [f"{member}-0" for member in self.consumers])
        wanted = {partition: thread for thread, mine in given.items() for partition in mine}
        await until(lambda: self.owners() == wanted)
        await until(lambda: {text for _, _, text in self.found()} == self.sent)
        ends = self.ends()
        await until(lambda: self.positions() == ends)

    def found(self) -> list[tuple[str, int, str]]:
        return [one for consumer in (*self.ended, *self.consumers.values()) for one in list(consumer.found)]


@pytest.fixture
def world(where: ConnectString, eyes: KazooClient, tmp_path: Path) -> Iterator[World]:
    made = World(where, eyes, tmp_path)
    with made.brokers[0], made.brokers[1]:
        try:
            yield made
        finally:
            for consumer in made.consumers.values():
                consumer.end(signal.SIGKILL)


async def test_three_consumers_of_a_group_share_what_two_brokers_have(world: World) -> None:
    await asyncio.to_thread(world.produce)
    for member in ("g_a", "g_b", "g_c"):
        world.join(member)
    await world.settle()
    assert sorted(list(world.owners().values()).count(f"g_{name}-0") for name in "abc") == [3, 3, 4]

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

    asleep = world.consumers["g_c"].process
    os.kill(asleep.pid, signal.SIGSTOP)
    path = f"{world.where.chroot}/consumers/{GROUP}/ids/g_c"
    await until(lambda: not world.eyes.exists(path))  # its session has expired
    await until(lambda: set(world.owners().values()) == {"g_d-0"})
    await asyncio.to_thread(world.produce)
    os.kill(asleep.pid, signal.SIGCONT)
    await world.settle()

    ends: dict[str, int] = world.ends()
    assert all(0 < offset <= ends[partition] for partition, offset, _ in world.found())
    assert all(text.startswith(f"{partition}-") for partition, _, text in world.found())
