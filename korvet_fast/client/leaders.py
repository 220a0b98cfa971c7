"""Naming the broker that leads a partition, of those that have copies, with Kafka's requests."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import Connection, connect
from korvet_fast.client.protocol.errors import (
    ClientError,
    ConnectionLost,
    NotRegistered,
    Unreachable,
    check_error_code,
)
from korvet_fast.client.replica_peers import introduce
from korvet_fast.client.security import PLAINTEXT, Security
from korvet_fast.core.replication.secret import OPERATOR, Secret
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.cluster import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS

REGISTRY = "@registry"
CLEAN, UNCLEAN = 0, 1  # election types
NOT_NEEDED = 84  # ELECTION_NOT_NEEDED
TIMEOUT_MS = 30_000
WAIT = 10.0  # seconds until the broker has to lead


async def appoint_leader(cluster: Cluster, topic: str, partition: int, broker: int, *, unclean: bool = False) -> None:
    """Have a broker lead a partition, or the metadata log (`REGISTRY`); returns when it does.

    `unclean`: also if the broker is not in sync. Raises `ClientError`.
    """
    if topic == REGISTRY:
        chosen = await _reach(cluster, broker, "is to lead @registry", [])
    else:
        row = await find_partition(cluster, topic, partition)
        chosen = await find_replica(cluster, topic, row, broker)
        present = row["replica_nodes"]
        replicas = [broker, *(one for one in present if one != broker)]
        asked = {"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}
        answer = await chosen.request(ALTER_PARTITION_REASSIGNMENTS, {"timeout_ms": TIMEOUT_MS, "topics": [asked]})
        ((row,),) = (one["partitions"] for one in answer["responses"])
        check_error_code(f"{topic} {partition}", row["error_code"], row["error_message"])
    await _elect(chosen, topic, partition, unclean=unclean)
    if topic != REGISTRY:
        await _await_leader(cluster, topic, partition, broker)


async def appoint_registry_leader(
    addresses: Sequence[Address],
    secret: Secret,
    broker: int,
    *,
    unclean: bool = False,
    security: Security = PLAINTEXT,
) -> None:
    """Have a broker lead the metadata log, at its listener replica://, the one that is open while it waits for others.

    `addresses`: of such listeners, one of them the broker's; nobody logs in there, whatever `security` has for that.
    See `appoint_leader`. Raises `ClientError`.
    """
    failures = []
    for address in addresses:
        try:
            connection = await connect(address, security=security._replace(login=None))
        except ClientError as error:
            failures.append(str(error))
            continue
        try:
            await introduce(connection, secret, OPERATOR, broker)
        except ClientError as error:
            failures.append(f"{error}: is it the listener replica:// of broker {broker}, with this secret?")
        else:
            return await _elect(connection, REGISTRY, 0, unclean=unclean)
        finally:
            await connection.close()
    raise ClientError("; ".join(failures))


async def _elect(chosen: Connection, topic: str, partition: int, *, unclean: bool) -> None:
    """Have the first replica of a partition lead, or this broker the metadata log. Raises `ClientError`."""
    kind = UNCLEAN if unclean else CLEAN
    places = [{"topic": topic, "partitions": [partition]}]
    answer = await chosen.request(
        ELECT_LEADERS, {"election_type": kind, "topic_partitions": places, "timeout_ms": TIMEOUT_MS}
    )
    ((row,),) = (one["partition_result"] for one in answer["replica_election_results"])
    if row["error_code"] != NOT_NEEDED:
        check_error_code(f"{topic} {partition}", row["error_code"], row["error_message"])


async def find_replica(cluster: Cluster, topic: str, row: Mapping[str, Any], broker: int) -> Connection:
    """A connection to a broker that has a copy of a partition. `row`: of `find_partition`. Raises `ClientError`."""
    name, replicas = f"{topic} {row['partition_index']}", row["replica_nodes"]
    if broker not in replicas:
        raise ClientError(f"broker {broker} has no copy of {name}; it is kept by {', '.join(map(str, replicas))}")
    return await _reach(cluster, broker, f"has a copy of {name}", [one for one in row["isr_nodes"] if one != broker])


async def _reach(cluster: Cluster, broker: int, subject: str, in_sync: Sequence[int]) -> Connection:
    """A connection to a broker, or a `ClientError` with what to do. `in_sync`: those that may lead in its place."""
    try:
        return await cluster.broker(broker)
    except NotRegistered:
        why = "is not registered: the others take it for gone"
    except (Unreachable, ConnectionLost) as error:
        why = f"does not answer ({error})"
    other = f"one that is in sync, {' or '.join(map(str, in_sync))}" if in_sync else "another one"
    raise ClientError(f"broker {broker} {subject}, but {why}. Start it, or name {other}")


async def find_partition(cluster: Cluster, topic: str, partition: int) -> dict[str, Any]:
    """The row of a partition in Metadata's answer. Raises `ClientError`."""
    (found,) = (await cluster.metadata([topic]))["topics"]
    check_error_code(f"topic {topic!r}", found["error_code"])
    for row in found["partitions"]:
        if row["partition_index"] == partition:
            return dict(row)
    raise ClientError(f"topic {topic!r} has no partition {partition}")


async def _await_leader(cluster: Cluster, topic: str, partition: int, broker: int) -> None:
    """Wait until the broker has taken over. Raises `ClientError`."""
    until = asyncio.get_running_loop().time() + WAIT
    while (await find_partition(cluster, topic, partition))["leader_id"] != broker:
        if asyncio.get_running_loop().time() > until:
            raise ClientError(f"broker {broker} is to lead {topic} {partition}, but has not taken over yet")
        await asyncio.sleep(0.1)
