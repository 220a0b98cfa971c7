"""`korvet-fast config`: the settings in force of brokers and topics, and the levels of a broker's loggers."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from korvet_fast.cli.assignment import parse_assignments
from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.cli.unset import check_unset, unknown_setting
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.configs import Config, Resource, ResourceType, alter_configs, describe_configs

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=Commands)
def command() -> None:
    """List, describe and set the settings of brokers and topics.

    \b
    Examples:
      korvet-fast config list
      korvet-fast config describe log.retention.ms
      korvet-fast config set retention.ms=3600000 --topic orders
    """


def _resource_options(function: F) -> F:
    """Add --topic, --broker and --loggers to a command, which gets them as one `Resource`."""

    def of(topic: str | None, broker: int | None, loggers: bool, **given: Any) -> None:
        if topic is not None and (broker is not None or loggers):
            raise click.UsageError("--topic goes neither with --broker nor with --loggers: leave one out")
        if topic is not None:
            resource = Resource(ResourceType.TOPIC, topic)
        else:
            kind = ResourceType.BROKER_LOGGER if loggers else ResourceType.BROKER
            resource = Resource(kind, "" if broker is None else str(broker))
        function(resource=resource, **given)

    of.__doc__ = function.__doc__
    of.__name__ = function.__name__
    of.__dict__.update(function.__dict__)
    for option in (
        click.option("--loggers", is_flag=True, help="The levels of a broker's loggers."),
        click.option(
            "--broker",
            type=click.IntRange(min=0),
            metavar="ID",
            help="A broker's id; any broker's settings if not given.",
        ),
        click.option("--topic", metavar="NAME", help="A topic's settings, instead of a broker's."),
    ):
        of = option(of)
    return of  # type: ignore[return-value]


@command.command("list")
@click.option("--changed", is_flag=True, help="Only settings that differ from their default.")
@_resource_options
@json_option
@bootstrap_option
def list_settings(resource: Resource, changed: bool, as_json: bool, bootstrap: Bootstrap) -> None:
    """List the settings in force, and where each comes from.

    \b
    Examples:
      korvet-fast config list --changed
      korvet-fast config list --topic orders
      korvet-fast config list --loggers
    """
    found = run(bootstrap, lambda cluster: describe_configs(cluster, resource))
    shown = [each for each in found if each.source != "default" or not changed]
    if as_json:
        print_json([each._asdict() for each in shown])
    else:
        draw_table(("setting", "value", "from"), [(each.name, _text(each.value), each.source) for each in shown])


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@_resource_options
@json_option
@bootstrap_option
def describe(resource: Resource, names: tuple[str, ...], as_json: bool, bootstrap: Bootstrap) -> None:
    """Say what settings do, what they are now, and what they are by default.

    \b
    Examples:
      korvet-fast config describe num.partitions max.connections
      korvet-fast config describe retention.ms --topic orders
    """

    async def work(cluster: Cluster) -> list[Config]:
        found = {each.name: each for each in await describe_configs(cluster, resource)}
        for name in names:
            if name not in found:
                raise unknown_setting(resource, name, found)
        return [found[name] for name in names]

    found = run(bootstrap, work)
    if as_json:
        print_json([each._asdict() for each in found])
        return
    for number, each in enumerate(found):
        if number:
            click.echo()
        draw_table(("", ""), _describe(each, resource))


def _describe(config: Config, resource: Resource) -> list[tuple[str, str]]:
    if not config.read_only:
        changed = "while the broker runs: korvet-fast config set"
    elif resource.kind is ResourceType.TOPIC:
        changed = "no more: it is fixed when a topic is created"
    else:
        changed = "when the broker starts: --set, the environment or a file"
    rows = [
        ("setting", config.name),
        ("value", _text(config.value)),
        ("from", config.source),
        ("default", _text(config.default)),
        ("kind", config.kind),
        ("what", config.doc),
        ("changed", changed),
    ]
    return [row for row in rows if row[1]]


@command.command("set")
@click.argument("assignments", nargs=-1, metavar="[NAME=VALUE]...", callback=parse_assignments)
@click.option("--unset", multiple=True, metavar="NAME", help="Give a setting back to its default.")
@_resource_options
@bootstrap_option
def set_settings(
    resource: Resource, assignments: list[tuple[str, str]], unset: tuple[str, ...], bootstrap: Bootstrap
) -> None:
    """Change settings while the broker runs: those of a topic, and the levels of a broker's loggers.

    A broker reads its other settings when it starts.

    \b
    Examples:
      korvet-fast config set retention.ms=3600000 --topic orders
      korvet-fast config set --unset retention.ms --topic orders
      korvet-fast config set korvet_fast=debug --loggers
    """
    if not assignments and not unset:
        raise click.UsageError("nothing to set: give NAME=VALUE, or --unset NAME")

    async def work(cluster: Cluster) -> None:
        await check_unset(cluster, resource, unset)
        await alter_configs(cluster, resource, assignments, unset)

    run(bootstrap, work)
    click.echo(f"altered {count(len(assignments) + len(unset), 'setting')} of {resource}")


def _text(value: str | None) -> str:
    return "" if value is None else value
