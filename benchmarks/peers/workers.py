"""Korvet Fast with two workers over one directory: each a broker that leads its share of the partitions."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import READY_WITHIN, Peer, PeerError, answers, free_ports
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.leaders import TIMEOUT_MS
from korvet_fast.client.protocol.errors import check_error_code
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

WORKERS = 2  # the machine that the table is of has as many cores


class Worker(Peer):
    """One of them, by its number from 1, once its parent has started it."""

    name = "a worker"

    def __init__(self, number: int, directory: Path, port: int, pid: int) -> None:
        super().__init__(directory, port)
        self.number = number
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid


class Workers(Korvet):
    """`with` starts the parent, and waits for all workers."""

    def __init__(self, directory: Path, *settings: str) -> None:
        super().__init__(directory, *settings)
        self._others = free_ports(WORKERS - 1)
        self.workers: Sequence[Worker] = ()

    def command(self) -> list[str]:
        ports = f"{self._others[0]}-{self._others[-1]}"  # of two workers this is one port
        return [*super().command(), "--workers", str(WORKERS), "--worker-ports", ports]

    def is_ready(self) -> bool:
        return all(map(answers, (self.port, *self._others)))

    def start(self) -> Self:
        super().start()
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        places = zip((self.port, *self._others), sorted(map(int, children)), strict=True)
        self.workers = [Worker(number, self.directory, *place) for number, place in enumerate(places, 1)]
        return self

    def create(self, topic: str, partitions: int, configs: Sequence[tuple[str, str]]) -> dict[Worker, list[int]]:
        """A topic; which partitions each worker leads, as it says itself. Raises PeerError."""
        row = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
        row["configs"] = [{"name": name, "value": value} for name, value in configs]

        async def ask() -> dict[Worker, list[int]]:
            async with Cluster([Address("127.0.0.1", self.port)]) as cluster:
                answer = await cluster.ask_controller(CREATE_TOPICS, {"topics": [row], "timeout_ms": TIMEOUT_MS})
            check_error_code(topic, answer["topics"][0]["error_code"], answer["topics"][0]["error_message"])
            deadline = time.monotonic() + READY_WITHIN
            while time.monotonic() < deadline:
                led = {worker: await _list_led(worker, topic) for worker in self.workers}
                if sum(map(len, led.values())) == partitions:
                    return {worker: numbers for worker, numbers in led.items() if numbers}
                await asyncio.sleep(0.02)
            raise PeerError(f"no worker leads some partition of {topic}")

        return asyncio.run(ask())


async def _list_led(worker: Worker, topic: str) -> list[int]:
    """The partitions that it leads by its own word; none while it does not know the topic."""
    async with Cluster([Address("127.0.0.1", worker.port)]) as cluster:
        (found,) = (await cluster.metadata([topic]))["topics"]
    return sorted(row["partition_index"] for row in found["partitions"] if row["leader_id"] == worker.number)
