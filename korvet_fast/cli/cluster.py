"""`korvet-fast cluster`: the brokers of a cluster."""

from typing import Any, Final, NamedTuple

import click

from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.client.cluster import Cluster
from korvet_fast.wire.kafka.shapes.quorum import DESCRIBE_QUORUM

METADATA_TOPIC: Final = "__cluster_metadata"  # Kafka's name of the metadata log


class BrokerListing(NamedTuple):
    """A broker. `leads`: the partitions that it leads; `copies`: those of which it has a copy."""

    broker: int
    host: str
    port: int
    rack: str | None
    controller: bool
    leads: int
    copies: int


class ClusterInfo(NamedTuple):
    """A cluster. `leaderless`: partitions that nobody leads; `lagging`: those of which a copy is not in sync.

    `registry_voters`: the brokers that have the metadata log; `registry_leader`: the one of them that leads it.
    """

    cluster: str | None
    controller: int | None
    topics: int
    partitions: int
    leaderless: int
    lagging: int
    registry_leader: int | None
    registry_voters: list[int]
    brokers: list[BrokerListing]


@click.group(cls=Commands)
def command() -> None:
    """Show the brokers of a cluster.

    \b
    Examples:
      korvet-fast cluster info
      korvet-fast cluster info --bootstrap broker.example.org:9092 --json
    """


@command.command()
@json_option
@bootstrap_option
def info(as_json: bool, bootstrap: Bootstrap) -> None:
    """Show the cluster's id, its brokers and what they lead, and the partitions that want attention.

    \b
    Examples:
      korvet-fast cluster info
      korvet-fast cluster info --json
    """
    found = run(bootstrap, describe_cluster)
    if as_json:
        print_json(found._asdict() | {"brokers": [row._asdict() for row in found.brokers]})
        return
    click.echo(
        f"cluster {found.cluster or 'without an id'}: {count(len(found.brokers), 'broker')}, "
        f"{count(found.topics, 'topic')}, {count(found.partitions, 'partition')}"
    )
    if found.leaderless:
        click.echo(f"{count(found.leaderless, 'partition')} without a leader: korvet-fast topic describe says which")
    if found.lagging:
        click.echo(f"{count(found.lagging, 'partition')} with a copy that is not in sync")
    if len(found.registry_voters) > 1:
        unled = "nobody leads @registry, the metadata log: name a broker with korvet-fast partition lead"
        leader = found.registry_leader
        click.echo(unled if leader is None else f"broker {leader} leads @registry, the metadata log")
    rows = [
        (
            str(row.broker),
            f"{row.host}:{row.port}",
            row.rack or "-",
            "yes" if row.controller else "",
            str(row.leads),
            str(row.copies),
        )
        for row in found.brokers
    ]
    draw_table(("broker", "address", "rack", "controller", "leads", "copies"), rows)


async def describe_cluster(cluster: Cluster) -> ClusterInfo:
    """Ask one broker about all. Raises `ClientError`."""
    answer = await cluster.metadata(None)
    partitions = [row for topic in answer["topics"] for row in topic["partitions"]]
    controller = answer["controller_id"]
    quorum = await _find_quorum(cluster)
    brokers = [
        BrokerListing(
            row["node_id"],
            row["host"],
            row["port"],
            row["rack"],
            row["node_id"] == controller,
            sum(each["leader_id"] == row["node_id"] for each in partitions),
            sum(row["node_id"] in each["replica_nodes"] for each in partitions),
        )
        for row in answer["brokers"]
    ]
    return ClusterInfo(
        answer["cluster_id"],
        controller if controller >= 0 else None,
        len(answer["topics"]),
        len(partitions),
        sum(each["leader_id"] < 0 for each in partitions),
        sum(len(each["isr_nodes"]) < len(each["replica_nodes"]) for each in partitions),
        quorum["leader_id"] if quorum["leader_id"] >= 0 else None,
        sorted(row["replica_id"] for row in quorum["current_voters"]),
        sorted(brokers),
    )


async def _find_quorum(cluster: Cluster) -> dict[str, Any]:
    """What a broker knows of who keeps the metadata. Raises `ClientError`."""
    asked = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    answer = await cluster.ask_controller(DESCRIBE_QUORUM, {"topics": [asked]})
    ((row,),) = (topic["partitions"] for topic in answer["topics"])
    return dict(row)
