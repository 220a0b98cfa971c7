"""`korvet-fast cluster`: the brokers of a cluster."""

import click

from korvet_fast.cli.cluster_description import ClusterInfo, describe_cluster
from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.client.leaders import REGISTRY
from korvet_fast.printable import printable


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

    Exit code 1 if a partition or the metadata log has no leader that answers.

    \b
    Examples:
      korvet-fast cluster info
      korvet-fast cluster info --json
    """
    found = run(bootstrap, describe_cluster)
    if as_json:
        print_json(found._asdict() | {"brokers": [row._asdict() for row in found.brokers]})
    else:
        _print(found)
    if found.problems:
        raise click.exceptions.Exit(1)


def _print(found: ClusterInfo) -> None:
    click.echo(
        f"cluster {found.cluster or 'without an id'}: {count(len(found.brokers), 'broker')}, "
        f"{count(found.topics, 'topic')}, {count(found.partitions, 'partition')}"
    )
    for problem in found.problems:
        click.echo(printable(problem))
    if found.lagging:
        click.echo(f"{count(found.lagging, 'partition')} with a copy that is not in sync")
    if len(found.registry_voters) > 1 and found.registry_leader is not None:
        click.echo(f"broker {found.registry_leader} leads {REGISTRY}, the metadata log")
    rows = [
        (
            str(row.broker),
            "-" if row.host is None else f"{row.host}:{row.port}",
            row.rack or "-",
            "yes" if row.controller else "",
            str(row.leads),
            str(row.copies),
            row.state,
        )
        for row in found.brokers
    ]
    draw_table(("broker", "address", "rack", "controller", "leads", "copies", "state"), rows)
