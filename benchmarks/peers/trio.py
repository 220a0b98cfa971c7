"""Three brokers that copy from each other, as one contestant: ours over files, or Apache Kafka's (`kafka/node.py`)."""

import asyncio
import secrets
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from benchmarks.generator import load
from benchmarks.peers.process import Peer, PeerError, free_ports
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.leaders import TIMEOUT_MS, find_partition
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

IDS = (1, 2, 3)
_PATIENCE = 300.0  # seconds until copies are there


class Broker(Peer):
    """One of three of this tree. `peers`: where they listen for each other, by id; `secret`: a file they share."""

    def __init__(self, directory: Path, identity: int, peers: Mapping[int, int], secret: Path) -> None:
        super().__init__(directory, free_ports(1)[0])
        self.name = f"broker {identity}"
        self._identity = identity
        self._peers = peers
        self._secret = secret

    def command(self) -> list[str]:
        peers = ",".join(f"{other}@127.0.0.1:{port}" for other, port in self._peers.items())
        settings = (
            f"node.id={self._identity}",
            f"replication.peers={peers}",
            f"replication.secret.file={self._secret}",
        )
        listeners = (f"kafka://{self.address}", f"replica://127.0.0.1:{self._peers[self._identity]}")
        words = [word for listener in listeners for word in ("--listen", listener)]
        words += [word for setting in settings for word in ("--set", setting)]
        store = f"file:{self.directory / 'data'}"
        return [sys.executable, "-m", "korvet_fast", "serve", "--store", store, *words]


def make_brokers(place: Path) -> dict[int, Peer]:
    """Three brokers of this tree, with the default settings, not started yet."""
    place.mkdir(parents=True, exist_ok=True)
    secret = place / "secret"
    secret.write_text(secrets.token_hex())
    peers = dict(zip(IDS, free_ports(len(IDS)), strict=True))
    return {identity: Broker(place / str(identity), identity, peers, secret) for identity in IDS}


@dataclass(frozen=True)
class Partition:
    """What Metadata says of a partition."""

    leader: int
    isr: frozenset[int]


class Trio:
    """`with` starts the brokers side by side, as one alone waits for another, and ends them."""

    def __init__(self, name: str, brokers: Mapping[int, Peer]) -> None:
        self.name = name
        self.brokers: Mapping[int, Peer] = MappingProxyType(dict(brokers))

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor(len(self.brokers)) as pool:
                list(pool.map(Peer.start, self.brokers.values()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(Peer.stop, self.brokers.values()))

    def find_leader(self, topic: str) -> "Leader":
        """The leader of partition 0, as what the load generator sends to; the work of all three counts."""
        return Leader(self, self.await_copies(topic).leader)

    def create(self, topic: str, factor: int, configs: Mapping[str, str] = MappingProxyType({})) -> None:
        """A topic of one partition, min.insync.replicas most of its copies.

        Returns when all are in sync; it has records then.
        """
        rows = [{"name": name, "value": value} for name, value in configs.items()]
        rows.append({"name": "min.insync.replicas", "value": str(factor // 2 + 1)})
        row = {"name": topic, "num_partitions": 1, "replication_factor": factor, "configs": rows}

        async def ask() -> None:
            async with self._connect() as cluster:
                answer = await cluster.ask_controller(CREATE_TOPICS, {"topics": [row], "timeout_ms": TIMEOUT_MS})
            found = answer["topics"][0]
            check_error_code(topic, found["error_code"], found["error_message"])

        asyncio.run(ask())
        self.await_copies(topic, factor)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:  # others may know who leads before the leader does
                load(self.find_leader(topic), "produce", topic, "--acks", "-1", "--seconds", "0.1", "--warm-up", "0")
                return
            except PeerError:
                if time.monotonic() > deadline:
                    raise

    def await_copies(self, topic: str, count: int = 0) -> Partition:
        """Until partition 0 has a leader, and so many brokers are in sync; 0: however many. Raises `TimeoutError`."""

        async def wait() -> Partition:
            async with asyncio.timeout(_PATIENCE), self._connect() as cluster:
                while True:
                    try:
                        found = await find_partition(cluster, topic, 0)
                    except ClientError:  # brokers come and go
                        found = {"leader_id": -1, "isr_nodes": []}
                    if found["leader_id"] > 0 and count in (0, len(found["isr_nodes"])):
                        return Partition(found["leader_id"], frozenset(found["isr_nodes"]))
                    await asyncio.sleep(0.02)

        return asyncio.run(wait())

    def _connect(self) -> Cluster:
        return Cluster([Address("127.0.0.1", broker.port) for broker in self.brokers.values()])


class Leader(Peer):
    """The broker that leads a partition: load goes to it, and what all three do for it counts."""

    def __init__(self, trio: Trio, identity: int) -> None:
        leader = trio.brokers[identity]
        super().__init__(leader.directory, leader.port)
        self.name = f"{trio.name}, broker {identity}"
        self._trio = trio

    @property
    def pids(self) -> list[int]:
        return [broker.pid for broker in self._trio.brokers.values() if broker.running]
