"""`korvet-fast partition`: name the broker that leads a partition, of those that have copies of it."""

import asyncio
from typing import Any

import click

from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.printable import printable
from korvet_fast.wire.kafka.shapes.cluster import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS

REGISTRY = "@registry"
CLEAN, UNCLEAN = 0, 1  # election types
NOT_NEEDED = 84  # ELECTION_NOT_NEEDED
TIMEOUT_MS = 30_000
WAIT = 10.0  # seconds until the broker has to lead


@click.group()
def command() -> None:
    """Name the leader of a partition.

    Brokers with replication.peers do not choose leaders themselves: whoever runs them does.

    \b
    Examples:
      korvet-fast partition lead orders 0 --broker 2
      korvet-fast partition lead @registry 0 --broker 2     # topics, settings, groups, and who leads what
    """


@command.command(name="lead")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.option("--broker", type=click.IntRange(min=0), required=True, help="The node.id of the broker that is to lead.")
@click.option("--unclean", is_flag=True, help="Also if the broker lacks records that were acknowledged: they are lost.")
@click.option("--yes", is_flag=True, help="With --unclean: do it.")
@bootstrap_option
def appoint(topic: str, partition: int, broker: int, unclean: bool, yes: bool, bootstrap: Bootstrap) -> None:
    """Have a broker lead a partition, or the metadata log (@registry, partition 0).

    Without --unclean nothing is lost: a broker that is not in sync is refused.
    """
    if unclean and not yes:
        raise click.UsageError(
            f"records that broker {broker} has no copy of are lost for good, and nobody can say how many while the "
            "others are away. If that is meant: --unclean --yes"
        )
    run(bootstrap, lambda cluster: _appoint(cluster, topic, partition, broker, unclean))
    click.echo(f"broker {broker} leads {printable(topic)} {partition}")


async def _appoint(cluster: Cluster, topic: str, partition: int, broker: int, unclean: bool) -> None:
    chosen = await cluster.broker(broker)
    if topic != REGISTRY:
        (found,) = (await cluster.metadata([topic]))["topics"]
        check_error_code(f"topic {topic!r}", found["error_code"])
        rows = {row["partition_index"]: row for row in found["partitions"]}
        if partition not in rows:
            raise ClientError(f"topic {topic!r} has no partition {partition}")
        present = rows[partition]["replica_nodes"]
        if broker not in present:
            raise ClientError(f"broker {broker} has no copy of {topic} {partition}; brokers {present} have")
        replicas = [broker, *(one for one in present if one != broker)]
        asked = {"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}
        answer = await chosen.request(ALTER_PARTITION_REASSIGNMENTS, {"timeout_ms": TIMEOUT_MS, "topics": [asked]})
        ((row,),) = (one["partitions"] for one in answer["responses"])
        check_error_code(f"{topic} {partition}", row["error_code"], row["error_message"])
    kind = UNCLEAN if unclean else CLEAN
    places = [{"topic": topic, "partitions": [partition]}]
    answer = await chosen.request(
        ELECT_LEADERS, {"election_type": kind, "topic_partitions": places, "timeout_ms": TIMEOUT_MS}
    )
    ((row,),) = (one["partition_result"] for one in answer["replica_election_results"])
    if row["error_code"] != NOT_NEEDED:
        check_error_code(f"{topic} {partition}", row["error_code"], row["error_message"])
    if topic != REGISTRY:
        await _await_leader(cluster, topic, partition, broker)


async def _await_leader(cluster: Cluster, topic: str, partition: int, broker: int) -> None:
    """Wait until the broker has taken over. Raises `ClientError`."""
    until = asyncio.get_running_loop().time() + WAIT
    while True:
        (found,) = (await cluster.metadata([topic]))["topics"]
        row: dict[str, Any] = next(row for row in found["partitions"] if row["partition_index"] == partition)
        if row["leader_id"] == broker:
            return
        if asyncio.get_running_loop().time() > until:
            raise ClientError(f"broker {broker} is to lead {topic} {partition}, but has not taken over yet")
        await asyncio.sleep(0.1)
