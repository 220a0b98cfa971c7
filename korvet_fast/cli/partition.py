"""`korvet-fast partition`: name the broker that leads a partition, of those that have copies of it."""

import click

from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.copies import find_ends, find_lags
from korvet_fast.client.leaders import REGISTRY, appoint_leader, find_partition, find_replica
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.printable import printable


@click.group(cls=Commands)
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
@click.option("--yes", is_flag=True, help="Confirms --unclean.")
@bootstrap_option
def appoint(topic: str, partition: int, broker: int, unclean: bool, yes: bool, bootstrap: Bootstrap) -> None:
    """Have a broker lead a partition, or the metadata log (@registry, partition 0).

    Without --unclean nothing is lost: a broker that is not in sync is refused.

    \b
    Examples:
      korvet-fast partition lead orders 0 --broker 2
    """
    if unclean and not yes:
        raise click.UsageError(run(bootstrap, lambda cluster: _warn(cluster, topic, partition, broker)))
    run(bootstrap, lambda cluster: appoint_leader(cluster, topic, partition, broker, unclean=unclean))
    click.echo(f"broker {broker} leads {printable(topic)} {partition}")


async def _warn(cluster: Cluster, topic: str, partition: int, broker: int) -> str:
    """What is lost if this broker leads though it is not in sync. Raises `ClientError`."""
    if topic == REGISTRY:
        return (
            f"what broker {broker} lacks of the metadata log is lost for good: topics, settings, groups, leaders. "
            "Copies of topics that are lost so are set aside, in directories whose names end with -stray. "
            "Without --unclean the answer says how much that is. If it is meant: --unclean --yes"
        )
    row = await find_partition(cluster, topic, partition)
    await find_replica(cluster, topic, row, broker)
    if broker in row["isr_nodes"]:
        return f"broker {broker} is in sync, so nothing is lost: leave out --unclean"
    ends = await find_ends(cluster, topic, row)
    if broker not in ends:
        raise ClientError(f"broker {broker} does not say how far its copy of {topic} {partition} is; try again")
    lag = (await find_lags(cluster, topic, [row])).get((partition, broker), 0)
    lost = max(*ends.values(), ends[broker] + lag) - ends[broker]
    away = sorted(set(row["replica_nodes"]) - ends.keys())
    unknown = f", and what only broker {' or '.join(map(str, away))} has, which is away" if away else ""
    return (
        f"broker {broker} lacks {count(lost, 'record')} of {topic} {partition}{unknown}: all of that is lost for good. "
        "If it is meant: --unclean --yes"
    )
