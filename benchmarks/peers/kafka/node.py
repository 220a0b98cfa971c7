"""Three Apache Kafka nodes (KRaft, each broker and controller in one) that copy from each other, as Kafka comes."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.kafka.broker import Kafka, make_cluster_id
from benchmarks.peers.process import Peer, free_ports
from benchmarks.peers.trio import IDS

# Three of them have about the memory that one has elsewhere; records are in the page cache, not on the heap.
HEAP = "384M"


class Node(Kafka):
    """One of three. `controllers`: the ports at which they find each other, by id."""

    heap = HEAP

    def __init__(self, directory: Path, identity: int, controllers: Mapping[int, int], cluster: str) -> None:
        super().__init__(directory)
        self.name = f"{Kafka.name}, node {identity}"
        self.identity = identity
        self.controllers = controllers
        self.cluster = cluster


def make_nodes(place: Path) -> dict[int, Peer]:
    """Three nodes, not started yet."""
    controllers = dict(zip(IDS, free_ports(len(IDS)), strict=True))
    cluster = make_cluster_id()
    return {identity: Node(place / str(identity), identity, controllers, cluster) for identity in IDS}
