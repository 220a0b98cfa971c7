"""`korvet-fast partition`: name the broker that leads a partition, of those that have copies of it."""

import asyncio
from pathlib import Path

import click

from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.copies import find_ends, find_lags
from korvet_fast.client.leaders import (
    REGISTRY,
    appoint_leader,
    appoint_registry_leader,
    find_partition,
    find_replica,
)
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.security import read_security
from korvet_fast.core.replication.secret import read_secret
from korvet_fast.errors import SettingError
from korvet_fast.printable import printable

_REGISTRY_LOSS = (
    "what broker {} lacks of the metadata log is lost for good: topics, settings, groups, leaders. "
    "Copies of topics that are lost so are set aside, in directories whose names end with -stray. "
    "Without --unclean the answer says how much that is. If it is meant: --unclean --yes"
)


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
@click.option(
    "--secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="For @registry while brokers wait for each other, or nobody can log in: replication.secret.file. "
    "--bootstrap is then the broker's replica:// listener; to replica+tls://, --command-config says how to connect.",
)
@bootstrap_option
def appoint(
    topic: str, partition: int, broker: int, unclean: bool, yes: bool, secret_file: Path | None, bootstrap: Bootstrap
) -> None:
    """Have a broker lead a partition, or the metadata log (@registry, partition 0).

    Without --unclean nothing is lost: a broker that is not in sync is refused.

    \b
    Examples:
      korvet-fast partition lead orders 0 --broker 2
      korvet-fast partition lead @registry 0 --broker 2 --bootstrap 127.0.0.1:9292 --secret-file secret
    """
    if secret_file is not None and (topic, partition) != (REGISTRY, 0):
        raise click.UsageError(f"--secret-file is for {REGISTRY} 0: name the leaders of topics when brokers are ready")
    if unclean and not yes:
        raise click.UsageError(
            _REGISTRY_LOSS.format(broker)
            if topic == REGISTRY
            else run(bootstrap, lambda cluster: _warn(cluster, topic, partition, broker))
        )
    if secret_file is not None:
        _appoint_by_secret(secret_file, broker, bootstrap, unclean=unclean)
    else:
        run(bootstrap, lambda cluster: appoint_leader(cluster, topic, partition, broker, unclean=unclean))
    click.echo(f"broker {broker} leads {printable(topic)} {partition}")


def _appoint_by_secret(secret_file: Path, broker: int, bootstrap: Bootstrap, *, unclean: bool) -> None:
    """Have a broker lead the metadata log, at its listener replica://. Raises `click.ClickException`."""
    try:
        secret = read_secret(str(secret_file))
        security = read_security(bootstrap.security)
        asyncio.run(appoint_registry_leader(bootstrap.addresses, secret, broker, unclean=unclean, security=security))
    except (SettingError, ClientError) as error:
        raise click.ClickException(str(error)) from None


async def _warn(cluster: Cluster, topic: str, partition: int, broker: int) -> str:
    """What is lost if this broker leads, in sync or not: its disk may be gone. Raises `ClientError`."""
    row = await find_partition(cluster, topic, partition)
    await find_replica(cluster, topic, row, broker)
    ends = await find_ends(cluster, topic, row)
    if broker not in ends:
        raise ClientError(f"broker {broker} does not say how far its copy of {topic} {partition} is; try again")
    if broker in row["isr_nodes"] and ends[broker] == max(ends.values()):
        return f"broker {broker} is in sync, so nothing is lost: leave out --unclean"
    lag = (await find_lags(cluster, topic, [row])).get((partition, broker), 0)
    lost = max(*ends.values(), ends[broker] + lag) - ends[broker]
    away = sorted(set(row["replica_nodes"]) - ends.keys())
    unknown = f", and what only broker {' or '.join(map(str, away))} has, which is away" if away else ""
    return (
        f"broker {broker} lacks {count(lost, 'record')} of {topic} {partition}{unknown}: all of that is lost for good. "
        "If it is meant: --unclean --yes"
    )
