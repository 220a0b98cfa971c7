"""Replicas, and waiting for what they have."""

from faults.redis.refusals import wait_for_more
from redis_server import RedisServer

Lengths = list[int]  # of the topic's streams, by partition


def attach(replica: RedisServer, master: RedisServer, port: int) -> None:
    """`replica` follows `master` through the proxy on this port, and gets what is written there."""
    replica.call("REPLICAOF", "127.0.0.1", port)
    replica.wait_for_stream(master)


def read_lengths(server: RedisServer, partitions: int = 2) -> Lengths:
    """How many entries a server has of each partition of the topic `load`."""
    return [server.call("XLEN", f"korvet:load:{index}") for index in range(partitions)]


def wait_for_appends(server: RedisServer, before: Lengths) -> None:
    """Until every partition has more there than `before`."""

    def count_least() -> int:
        return min(now - then for now, then in zip(read_lengths(server, len(before)), before, strict=True))

    wait_for_more(count_least, 0, f"nothing is written to the server at port {server.port}")
