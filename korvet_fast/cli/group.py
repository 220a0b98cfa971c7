"""`korvet-fast group`: list, describe, reset and delete."""

from collections.abc import Sequence
from typing import Any

import click

from korvet_fast.cli.offset_target import Target, find_target, parse_target
from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run, run_each
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.groups import (
    GroupDescription,
    GroupListing,
    commit,
    delete_group,
    describe_group,
    fetch_committed,
    list_groups,
)
from korvet_fast.client.protocol.errors import BrokerError, ClientError
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.errors import Errors
from korvet_fast.printable import printable

STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable")
KINDS = ("classic", "consumer")


@click.group(cls=Commands)
def command() -> None:
    """List, describe, reset and delete consumer groups.

    \b
    Examples:
      korvet-fast group list --state Stable
      korvet-fast group describe billing
      korvet-fast group reset billing --topic orders --to earliest
      korvet-fast group reset billing --all-topics --to 2026-01-31T12:00:00+01:00 --dry-run
      korvet-fast group delete billing
    """


@command.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only groups in this state.",
)
@click.option(
    "--type",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS, case_sensitive=False),
    help="Only groups of this protocol.",
)
@json_option
@bootstrap_option
def list_command(states: tuple[str, ...], kinds: tuple[str, ...], as_json: bool, bootstrap: Bootstrap) -> None:
    """List the groups of all brokers.

    \b
    Examples:
      korvet-fast group list
      korvet-fast group list --state Empty --json
    """

    async def work(cluster: Cluster) -> list[GroupListing]:
        return await list_groups(cluster, states, kinds)

    found = run(bootstrap, work)
    if as_json:
        print_json([row._asdict() for row in found])
    else:
        titles = ("group", "type", "state", "protocol type")
        draw_table(titles, [(row.group, row.kind, row.state, row.protocol_type) for row in found])


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@json_option
@bootstrap_option
def describe(names: tuple[str, ...], as_json: bool, bootstrap: Bootstrap) -> None:
    """Show where groups are: what they have committed, the end, the lag in offsets, and who reads what.

    \b
    Examples:
      korvet-fast group describe billing
      korvet-fast group describe billing shipping --json
    """

    async def work(cluster: Cluster) -> list[GroupDescription]:
        return [await describe_group(cluster, name) for name in names]

    found = run(bootstrap, work)
    if as_json:
        print_json([row._asdict() | {"progress": [each._asdict() for each in row.progress]} for row in found])
        return
    for number, row in enumerate(found):
        if number:
            click.echo()
        protocol = f", protocol {row.protocol}" if row.protocol else ""
        line = f"group {row.group}: {row.kind}, {row.state}, {count(row.members, 'member')}{protocol}"
        click.echo(printable(line))
        draw_table(
            ("topic", "partition", "committed", "end", "lag", "member", "host"),
            [
                (
                    each.topic,
                    str(each.partition),
                    *(_number(value) for value in (each.committed, each.end, each.lag)),
                    each.member or "-",
                    each.host or "-",
                )
                for each in row.progress
            ],
        )


def _parse_topics(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, list[int] | None]]:
    topics: list[tuple[str, list[int] | None]] = []
    for text in given:
        name, colon, numbers = text.partition(":")
        each = numbers.split(",")
        if not name or (colon and not all(number.isdecimal() and len(number) <= 9 for number in each)):
            raise click.BadParameter(f"{text!r}: write it as TOPIC, or TOPIC:0,1,2 for some of its partitions")
        topics.append((name, [int(number) for number in each] if colon else None))
    return topics


@command.command()
@click.argument("name", metavar="GROUP")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1,...]",
    callback=_parse_topics,
    help="A topic, or some partitions of it. May be given more than once.",
)
@click.option("--all-topics", is_flag=True, help="All partitions that the group has committed.")
@click.option(
    "--to",
    "target",
    type=parse_target,
    required=True,
    metavar="earliest|latest|OFFSET|TIME",
    help="Where the group goes on. A TIME without a zone is UTC.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@json_option
@bootstrap_option
def reset(
    name: str,
    topics: list[tuple[str, list[int] | None]],
    all_topics: bool,
    target: Target,
    dry_run: bool,
    as_json: bool,
    bootstrap: Bootstrap,
) -> None:
    """Set where a group goes on reading. The group must have no members: stop its consumers first.

    With a TIME the group goes on at the first record of that time or later, or at the end if there is none.

    \b
    Examples:
      korvet-fast group reset billing --topic orders --to earliest --dry-run
      korvet-fast group reset billing --topic orders:0,2 --to 2026-01-31T12:00:00+01:00
    """
    if bool(topics) == all_topics:
        raise click.UsageError("say what is to be reset: --topic, or --all-topics")

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        if not dry_run:
            await _check_empty(cluster, name)
        committed = await fetch_committed(cluster, name)
        places = (
            sorted(committed) if all_topics else [place for topic in topics for place in await _places(cluster, topic)]
        )
        if not places:
            raise ClientError(f"group {name!r} has committed nothing that could be reset")
        positions = {place: await _find(cluster, place, target) for place in places}
        if not dry_run:
            await commit(cluster, name, positions)
        before = {place: committed[place][0] if place in committed else None for place in places}
        return [
            {"topic": place[0], "partition": place[1], "before": before[place], "after": after}
            for place, after in positions.items()
        ]

    rows = run(bootstrap, work)
    if as_json:
        print_json(rows)
        return
    draw_table(
        ("topic", "partition", "before", "after"),
        [(row["topic"], str(row["partition"]), _number(row["before"]), str(row["after"])) for row in rows],
    )
    if dry_run:
        click.echo("nothing was changed: this was a dry run", err=True)


async def _places(cluster: Cluster, topic: tuple[str, list[int] | None]) -> list[TopicPartition]:
    name, wanted = topic
    known = await cluster.partitions(name)
    for partition in wanted or ():
        if partition not in known:
            raise ClientError(f"topic {name!r} has no partition {partition}, only 0 to {len(known) - 1}")
    return [(name, partition) for partition in (known if wanted is None else wanted)]


async def _find(cluster: Cluster, place: TopicPartition, target: Target) -> int:
    first, end, found = await find_target(cluster, *place, target)
    if not first <= found <= end:
        raise ClientError(f"partition {place[1]} of topic {place[0]!r} holds offsets {first} to {end} only")
    return found


async def _check_empty(cluster: Cluster, group: str) -> None:
    """Raise `ClientError` if the group has members: they would go on where they are, and commit that."""
    try:
        members = (await describe_group(cluster, group)).members
    except BrokerError as error:
        if error.error is Errors.GROUP_ID_NOT_FOUND:
            return  # the first commit makes it
        raise
    if members:
        what = "stop it first" if members == 1 else "stop them first"
        raise ClientError(f"group {group!r} has {count(members, 'member')}: {what}")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@bootstrap_option
def delete(names: Sequence[str], bootstrap: Bootstrap) -> None:
    """Delete groups without members, and all that they have committed. There is no way back.

    \b
    Examples:
      korvet-fast group delete billing
    """

    async def work(cluster: Cluster) -> None:
        async def delete_one(name: str) -> None:
            await delete_group(cluster, name)
            click.echo(f"deleted group {printable(name)}")

        await run_each(names, delete_one)

    run(bootstrap, work)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
