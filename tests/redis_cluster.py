"""A Redis Cluster of three masters, and slots that move key by key while others write."""

import time
from collections.abc import Iterator
from pathlib import Path

from redis_server import READY_WITHIN, RedisServer, free_port

SLOTS = 16_384


class Cluster:
    """Three masters without replicas; node n owns the n-th third of the slots."""

    def __init__(self, program: str, directory: Path, **options: str | int) -> None:
        self.nodes = []
        for number in range(3):
            node = RedisServer(program, directory / f"node-{number}", cluster_enabled="yes", **options)
            node.options |= {"cluster-port": free_port(), "cluster-node-timeout": 10_000}
            self.nodes.append(node)

    @property
    def url(self) -> str:
        """As the broker takes it."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}"

    def start(self) -> "Cluster":
        """Start all and wait until each knows who owns every slot."""
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            node.start()
            node.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.call("CLUSTER", "ADDSLOTSRANGE", number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1)
        for node in self.nodes[1:]:
            node.call("CLUSTER", "MEET", *first.address, first.options["cluster-port"])
        deadline = time.monotonic() + READY_WITHIN
        while not all(self._whole(node) for node in self.nodes):
            assert time.monotonic() < deadline, "the Cluster does not come together"
            time.sleep(0.02)
        return self

    @staticmethod
    def _whole(node: RedisServer) -> bool:
        known = dict(line.split(":") for line in node.call("CLUSTER", "INFO").decode().split())
        return known["cluster_state"] == "ok" and known["cluster_known_nodes"] == "3"

    def slot(self, key: str) -> int:
        """The slot of a key."""
        return int(self.nodes[0].call("CLUSTER", "KEYSLOT", key))

    def owner(self, slot: int) -> RedisServer:
        """The node that serves a slot, by its own word."""
        for node in self.nodes:
            for start, end, *_ in self._ranges(node):
                if start <= slot <= end:
                    return node
        raise AssertionError(f"nobody owns slot {slot}")

    @staticmethod
    def _ranges(node: RedisServer) -> list[tuple[int, int]]:
        lines = node.call("CLUSTER", "NODES").decode().splitlines()
        me = next(line for line in lines if "myself" in line)
        found = []
        for word in me.split()[8:]:
            if not word.startswith("["):  # a slot that is on its way
                start, _, end = word.partition("-")
                found.append((int(start), int(end or start)))
        return found

    def move(self, slot: int, target: RedisServer) -> Iterator[bytes]:
        """Move a slot key by key; between two keys the test does what it likes. Yields each key when it has moved.

        The first thing yielded is b"": the slot is open on both sides, and no key has moved yet.
        """
        source = self.owner(slot)
        names = {node.port: node.call("CLUSTER", "MYID") for node in (source, target)}
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source.port])
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target.port])
        yield b""
        while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 1):
            source.call("MIGRATE", *target.address, keys[0], 0, 5000)
            yield keys[0]
        for node in (target, source, *(n for n in self.nodes if n not in (source, target))):
            node.call("CLUSTER", "SETSLOT", slot, "NODE", names[target.port])

    def stop(self) -> None:
        """End all of them."""
        for node in self.nodes:
            node.kill()
