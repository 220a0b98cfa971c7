"""Replicas, and waiting for what they have."""

import time

from redis_server import READY_WITHIN, RedisServer

Lengths = list[int]  # of the topic's streams, by partition


def wait_for_stream(master: RedisServer, replica: RedisServer) -> None:
    """Until the replica gets what the master writes.

    When its link is up it has been filled; the master may hold back what it writes for a second more, and whoever is
    promoted in that time has nothing of it.
    """
    master.call("PUBLISH", "replicas", "")  # they are told, and nothing is kept
    written = int(master.info("replication")["master_repl_offset"])
    deadline = time.monotonic() + READY_WITHIN
    while int(replica.info("replication")["slave_repl_offset"]) < written:
        assert time.monotonic() < deadline, "the replica gets nothing"
        time.sleep(0.005)


def attach(replica: RedisServer, master: RedisServer, port: int) -> None:
    """`replica` follows `master` through the proxy on this port, and gets what is written there."""
    replica.call("REPLICAOF", "127.0.0.1", port)
    replica.wait_for("replication", role="slave", master_link_status="up")
    wait_for_stream(master, replica)


def read_lengths(server: RedisServer, partitions: int = 2) -> Lengths:
    """How many entries a server has of each partition of the topic `load`."""
    return [server.call("XLEN", f"korvet:load:{index}") for index in range(partitions)]


def wait_for_more(server: RedisServer, before: Lengths, within: float = 30.0) -> None:
    """Until every partition has more there than `before`."""
    deadline = time.monotonic() + within
    while any(now <= then for now, then in zip(read_lengths(server, len(before)), before, strict=True)):
        assert time.monotonic() < deadline, f"nothing is written to the server at port {server.port}"
        time.sleep(0.005)
