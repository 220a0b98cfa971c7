"""`korvet-fast topic`: create, list, describe, alter and delete."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import click

from korvet_fast.cli.assignment import parse_assignments
from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run, run_each
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.cli.topic_description import TITLES, TopicDescription, describe_topic, row_of
from korvet_fast.cli.unset import check_unset
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.configs import Resource, ResourceType, alter_configs
from korvet_fast.client.protocol.errors import check_error_code
from korvet_fast.printable import printable
from korvet_fast.wire.kafka.shapes.topics import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS

F = TypeVar("F", bound=Callable[..., Any])

TIMEOUT_MS = 30_000
PARTITIONS = click.IntRange(1, (1 << 31) - 1)  # as many as the protocol has numbers for
LAYOUT = "storage.layout"
LAYOUTS = ("entries", "batches", "legacy")


class TopicListing(NamedTuple):
    """A topic in the list of topics."""

    topic: str
    partitions: int


@click.group(cls=Commands)
def command() -> None:
    """Create, list, describe, alter and delete topics.

    \b
    Examples:
      korvet-fast topic create orders --partitions 4 --set retention.ms=86400000
      korvet-fast topic list
      korvet-fast topic describe orders
      korvet-fast topic alter orders --partitions 8 --set compression.type=zstd
      korvet-fast topic delete orders
    """


def _set_option(sentence: str) -> Callable[[F], F]:
    return click.option(
        *("--set", "--config"),  # the second as Kafka's own tools have it
        "configs",
        multiple=True,
        metavar="NAME=VALUE",
        callback=parse_assignments,
        help=sentence,
    )


@command.command()
@click.argument("name")
@click.option("--partitions", type=PARTITIONS, help="Number of partitions; the broker's num.partitions if not given.")
@click.option(
    "--replication-factor",
    "factor",
    type=click.IntRange(1, 32767),
    metavar="N",
    help="Brokers that keep a copy; default.replication.factor if not given, and 1 where brokers have no peers.",
)
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    help="How the records are kept. In Redis: each as an entry that other programs can read and write (entries), or in "
    "the producers' batches (batches). In any store: as messages of Kafka 0.7 (legacy). The store's default if not "
    "given.",
)
@_set_option("A setting of the topic, for example retention.ms=86400000. May be given more than once.")
@bootstrap_option
def create(
    name: str,
    partitions: int | None,
    factor: int | None,
    layout: str | None,
    configs: list[tuple[str, str]],
    bootstrap: Bootstrap,
) -> None:
    """Create a topic.

    \b
    Examples:
      korvet-fast topic create orders
      korvet-fast topic create orders --partitions 4 --set retention.ms=86400000 --set compression.type=zstd
    """
    if layout is not None:
        configs = [*configs, (LAYOUT, layout)]
    topic = {
        "name": name,
        "num_partitions": partitions or -1,
        "replication_factor": factor or -1,
        "configs": [{"name": key, "value": value} for key, value in configs],
    }

    async def work(cluster: Cluster) -> None:
        answer = await cluster.ask_controller(CREATE_TOPICS, {"topics": [topic], "timeout_ms": TIMEOUT_MS})
        (made,) = answer["topics"]
        check_error_code(f"topic {name!r} was not created", made["error_code"], made["error_message"])
        number = made["num_partitions"]  # brokers send it from version 5 of CreateTopics on
        click.echo(f"created topic {printable(name)}" + (f" with {count(number, 'partition')}" if number > 0 else ""))

    run(bootstrap, work)


@command.command("list")
@json_option
@bootstrap_option
def list_topics(as_json: bool, bootstrap: Bootstrap) -> None:
    """List all topics and how many partitions each has.

    \b
    Examples:
      korvet-fast topic list
      korvet-fast topic list --json
    """

    async def work(cluster: Cluster) -> list[TopicListing]:
        answer = await cluster.metadata(None)
        return sorted(TopicListing(row["name"], len(row["partitions"])) for row in answer["topics"])

    found = run(bootstrap, work)
    if as_json:
        print_json([row._asdict() for row in found])
    else:
        draw_table(TopicListing._fields, [(row.topic, str(row.partitions)) for row in found])


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--count", "counted", is_flag=True, help="Count the records, by reading all of them.")
@json_option
@bootstrap_option
def describe(names: tuple[str, ...], counted: bool, as_json: bool, bootstrap: Bootstrap) -> None:
    """Show a topic's partitions, the offsets they hold, who has copies, and the settings made on it.

    Over Redis, in layout `entries`, offsets follow the clock and have gaps: there are far fewer records than offsets.

    \b
    Examples:
      korvet-fast topic describe orders
      korvet-fast topic describe orders --count --json
    """

    async def work(cluster: Cluster) -> list[TopicDescription]:
        return [await describe_topic(cluster, name, counted) for name in names]

    found = run(bootstrap, work)
    if as_json:
        print_json([row._asdict() | {"partitions": [each._asdict() for each in row.partitions]} for row in found])
        return
    for number, topic in enumerate(found):
        if number:
            click.echo()
        if len(found) > 1:
            click.echo(f"topic {printable(topic.topic)}")
        draw_table((*TITLES, "records") if counted else TITLES, map(row_of, topic.partitions))
        click.echo()
        if topic.settings:
            draw_table(("setting", "value"), [(name, str(value)) for name, value in topic.settings.items()])
        else:
            click.echo("no settings of its own: the broker's defaults hold")


@command.command()
@click.argument("name")
@click.option("--partitions", type=PARTITIONS, help="The new number, larger than the present one.")
@_set_option("Set a setting of the topic. May be given more than once.")
@click.option("--unset", "unset", multiple=True, metavar="NAME", help="Give a setting back to the broker's default.")
@bootstrap_option
def alter(
    name: str, partitions: int | None, configs: list[tuple[str, str]], unset: tuple[str, ...], bootstrap: Bootstrap
) -> None:
    """Add partitions to a topic, or change its settings.

    \b
    Examples:
      korvet-fast topic alter orders --partitions 8
      korvet-fast topic alter orders --set retention.ms=3600000 --unset compression.type
    """
    if partitions is None and not configs and not unset:
        raise click.UsageError("nothing to alter: give --partitions, --set or --unset")

    async def work(cluster: Cluster) -> None:
        if changes := len(configs) + len(unset):
            topic = Resource(ResourceType.TOPIC, name)
            await check_unset(cluster, topic, unset)
            await alter_configs(cluster, topic, configs, unset)
            click.echo(f"altered {count(changes, 'setting')} of topic {printable(name)}")
        if partitions is not None:
            wanted = {"name": name, "count": partitions, "assignments": None}
            answer = await cluster.ask_controller(CREATE_PARTITIONS, {"topics": [wanted], "timeout_ms": TIMEOUT_MS})
            (grown,) = answer["results"]
            check_error_code(
                f"topic {name!r} was not given more partitions", grown["error_code"], grown["error_message"]
            )
            click.echo(f"topic {printable(name)} has {count(partitions, 'partition')} now")

    run(bootstrap, work)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@bootstrap_option
def delete(names: tuple[str, ...], bootstrap: Bootstrap) -> None:
    """Delete topics and all their records. There is no way back.

    \b
    Examples:
      korvet-fast topic delete orders
      korvet-fast topic delete orders-old orders-older
    """

    async def report(row: Mapping[str, Any]) -> None:
        check_error_code(f"topic {row['name']!r} was not deleted", row["error_code"], row["error_message"])
        click.echo(f"deleted topic {printable(row['name'])}")

    async def work(cluster: Cluster) -> None:
        answer = await cluster.ask_controller(
            DELETE_TOPICS,
            {"topics": [{"name": name} for name in names], "topic_names": list(names), "timeout_ms": TIMEOUT_MS},
        )
        await run_each(answer["responses"], report)

    run(bootstrap, work)
