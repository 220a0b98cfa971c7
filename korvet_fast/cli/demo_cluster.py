"""`korvet-fast demo-cluster`: three brokers keep each other's copies, the leader is killed, and nothing is missing."""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from korvet_fast.cli.demo_brokers import BROKERS, DemoBrokers
from korvet_fast.cli.demo_orders import TOPIC, Orders
from korvet_fast.cli.session import count
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.leaders import REGISTRY, TIMEOUT_MS, appoint_leader, find_partition
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

T = TypeVar("T")

MORE = 500  # records that are to be acknowledged before the next thing happens
PATIENCE = 60.0  # seconds for each step
AGAIN = 0.1


@click.command()
def command() -> None:
    """Show what copies are for: three brokers, the leader is killed with -9, and nothing is missing.

    The brokers are processes of their own on free ports of 127.0.0.1, with files in a temporary directory; both are
    gone at the end.

    \b
    Examples:
      korvet-fast demo-cluster
    """
    logging.getLogger("korvet_fast.client").setLevel(logging.ERROR)  # that a broker is gone is part of the story
    with tempfile.TemporaryDirectory(prefix="korvet-demo-") as place:
        brokers = DemoBrokers(Path(place))
        asyncio.run(_run(brokers, place))


async def _run(brokers: DemoBrokers, place: str) -> None:
    try:
        click.echo(f"Three brokers start. Each has files of its own, in {place}.")
        async with brokers, Cluster(list(brokers.addresses.values())) as cluster:
            await _show(brokers, cluster)
        click.echo("The brokers have stopped, and their files are removed.")
    except ClientError as error:
        raise click.ClickException(str(error)) from None


async def _show(brokers: DemoBrokers, cluster: Cluster) -> None:
    await _create(cluster)
    leader = await _await_copies(cluster)
    click.echo(
        f"Topic {TOPIC} has three copies, and broker {leader} leads it. A record is acknowledged when two brokers"
    )
    click.echo("have it on their disks (acks=all, min.insync.replicas=2).")
    async with Orders(list(brokers.addresses.values())) as orders:
        await orders.wait_for(MORE)
        click.echo(f"{count(orders.acknowledged, 'record')} are acknowledged. Now broker {leader} is killed with -9.")
        await brokers.kill(leader)
        await _replace(cluster, leader)
        await orders.wait_for(MORE)
        await _check(cluster, orders)
        click.echo(f"Broker {leader} starts again, and copies what was written without it.")
        await brokers.start(leader)
        await _await_copies(cluster)
        click.echo(f"Broker {leader} is in sync again, so nothing is lost when it leads:")
        await _appoint(cluster, TOPIC, leader)
        await orders.wait_for(MORE)
    await _check(cluster, orders)


async def _create(cluster: Cluster) -> None:
    configs = [{"name": "min.insync.replicas", "value": "2"}]
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": len(BROKERS), "configs": configs}

    async def create() -> None:
        answer = await cluster.ask_controller(CREATE_TOPICS, {"topics": [topic], "timeout_ms": TIMEOUT_MS})
        (made,) = answer["topics"]
        check_error_code(f"topic {TOPIC!r}", made["error_code"], made["error_message"])

    await _insist(create)


async def _await_copies(cluster: Cluster) -> int:
    """Wait until all brokers are in sync; returns who leads."""

    async def find_leader() -> int:
        found = await find_partition(cluster, TOPIC, 0)
        if found["leader_id"] < 0 or len(found["isr_nodes"]) < len(BROKERS):
            raise ClientError(f"in sync are the brokers {found['isr_nodes']}, and broker {found['leader_id']} leads")
        return int(found["leader_id"])

    return await _insist(find_leader)


async def _replace(cluster: Cluster, gone: int) -> None:
    """Have other brokers lead what this one led."""
    heir = next(broker for broker in BROKERS if broker != gone)
    if gone == BROKERS[0]:
        click.echo(f"Broker {gone} led the metadata log too. Whoever runs the brokers says who leads from now on:")
        await _appoint(cluster, REGISTRY, heir)
    else:
        click.echo("Whoever runs the brokers says who leads from now on:")
    await _appoint(cluster, TOPIC, heir)


async def _appoint(cluster: Cluster, topic: str, broker: int) -> None:
    click.echo(f"  korvet-fast partition lead {topic} 0 --broker {broker}")
    await _insist(lambda: appoint_leader(cluster, topic, 0, broker))


async def _check(cluster: Cluster, orders: Orders) -> None:
    acknowledged = orders.acknowledged
    await _insist(lambda: orders.check(cluster, acknowledged))
    click.echo(f"Read back: all {acknowledged:,} acknowledged records are there, each once and in order.")


async def _insist(work: Callable[[], Awaitable[T]]) -> T:
    """Do it again until it succeeds: brokers are learning of each other meanwhile. Raises `ClientError`."""
    until = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            return await work()
        except ClientError:
            if asyncio.get_running_loop().time() > until:
                raise
            await asyncio.sleep(AGAIN)
