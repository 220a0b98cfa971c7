"""Replicas, and waiting for what they have."""

import time

from redis_server import RedisServer

Lengths = list[int]  # of the topic's streams, by partition


def attach(replica: RedisServer, master: RedisServer, port: int) -> None:
    """`replica` follows `master` through the proxy on this port, and gets what is written there."""
    replica.call("REPLICAOF", "127.0.0.1", port)
    replica.wait_for_stream(master)


def read_lengths(server: RedisServer, partitions: int = 2) -> Lengths:
    """How many entries a server has of each partition of the topic `load`."""
    return [server.call("XLEN", f"korvet:load:{index}") for index in range(partitions)]


def wait_for_more(server: RedisServer, before: Lengths, within: float = 240.0) -> None:
    """Until every partition has more there than `before`."""
    deadline = time.monotonic() + within
    while any(now <= then for now, then in zip(read_lengths(server, len(before)), before, strict=True)):
        assert time.monotonic() < deadline, f"nothing is written to the server at port {server.port}"
        time.sleep(0.005)
