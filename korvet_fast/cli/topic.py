"""`korvet-fast topic`: create, list, describe, alter and delete."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.cli.table import draw_table
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import find_offset
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.printable import printable
from korvet_fast.types import EARLIEST, LATEST
from korvet_fast.wire.kafka.shapes.configs import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from korvet_fast.wire.kafka.shapes.topics import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS

F = TypeVar("F", bound=Callable[..., Any])

TOPIC = 2  # a resource type of the config requests
SET, DELETE = 0, 1  # operations of IncrementalAlterConfigs
OWN = 1  # config_source: set on the topic itself
TIMEOUT_MS = 30_000
LAYOUT = "storage.layout"
LAYOUTS = ("entries", "batches", "legacy")


@click.group()
def command() -> None:
    """Create, list, describe, alter and delete topics.

    \b
    Examples:
      korvet-fast topic create orders --partitions 4 --config retention.ms=86400000
      korvet-fast topic list
      korvet-fast topic describe orders
      korvet-fast topic alter orders --partitions 8 --config compression.type=zstd
      korvet-fast topic delete orders
    """


def _configs(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r}: write it as name=value, for example retention.ms=86400000")
        pairs.append((name, value))
    return pairs


def _config_option(sentence: str) -> Callable[[F], F]:
    return click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", callback=_configs, help=sentence)


@command.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(min=1), help="How many; the broker's num.partitions if not given.")
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
    help="How a store in Redis keeps the records: every one an entry that other programs can read and write, or in the"
    " producers' batches. On any store: as messages of Kafka 0.7 (legacy). The store's default if not given.",
)
@_config_option("A setting of the topic, for example retention.ms=86400000. May be given more than once.")
@bootstrap_option
def create(
    name: str,
    partitions: int | None,
    factor: int | None,
    layout: str | None,
    configs: list[tuple[str, str]],
    bootstrap: Bootstrap,
) -> None:
    """Create a topic."""
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
@bootstrap_option
def list_topics(bootstrap: Bootstrap) -> None:
    """List all topics and how many partitions each has."""

    async def work(cluster: Cluster) -> list[tuple[str, str]]:
        answer = await cluster.metadata(None)
        return sorted((row["name"], str(len(row["partitions"]))) for row in answer["topics"])

    draw_table(("topic", "partitions"), run(bootstrap, work))


@command.command()
@click.argument("name")
@bootstrap_option
def describe(name: str, bootstrap: Bootstrap) -> None:
    """Show a topic's partitions, the offsets they hold, and the settings made on it."""

    async def work(cluster: Cluster) -> tuple[list[tuple[str, ...]], list[tuple[str, str]]]:
        answer = await cluster.metadata([name])
        (topic,) = answer["topics"]
        check_error_code(f"topic {name!r}", topic["error_code"])
        rows: list[tuple[str, ...]] = []
        for partition in sorted(topic["partitions"], key=lambda row: int(row["partition_index"])):
            index = partition["partition_index"]
            first = await find_offset(cluster, name, index, EARLIEST)
            end = await find_offset(cluster, name, index, LATEST)
            rows.append((str(index), str(partition["leader_id"]), str(first), str(end), str(end - first)))
        return rows, await _own_configs(cluster, name)

    partitions, configs = run(bootstrap, work)
    draw_table(("partition", "leader", "first offset", "next offset", "offsets"), partitions)
    click.echo()
    if configs:
        draw_table(("setting", "value"), configs)
    else:
        click.echo("no settings of its own: the broker's defaults hold")


@command.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(min=1), help="The new number, larger than the present one.")
@_config_option("Set a setting of the topic. May be given more than once.")
@click.option("--unset", "unset", multiple=True, metavar="NAME", help="Give a setting back to the broker's default.")
@bootstrap_option
def alter(
    name: str, partitions: int | None, configs: list[tuple[str, str]], unset: tuple[str, ...], bootstrap: Bootstrap
) -> None:
    """Add partitions to a topic, or change its settings."""
    if partitions is None and not configs and not unset:
        raise click.UsageError("nothing to alter: give --partitions, --config or --unset")
    changes = [{"name": key, "value": value, "config_operation": SET} for key, value in configs]
    changes += [{"name": key, "value": None, "config_operation": DELETE} for key in unset]

    async def work(cluster: Cluster) -> None:
        if changes:
            resource = {"resource_type": TOPIC, "resource_name": name, "configs": changes}
            answer = await cluster.ask_controller(INCREMENTAL_ALTER_CONFIGS, {"resources": [resource]})
            (altered,) = answer["responses"]
            check_error_code(f"topic {name!r} was not altered", altered["error_code"], altered["error_message"])
            click.echo(f"altered {count(len(changes), 'setting')} of topic {printable(name)}")
        if partitions is not None:
            wanted = {"name": name, "count": partitions, "assignments": None}
            answer = await cluster.ask_controller(CREATE_PARTITIONS, {"topics": [wanted], "timeout_ms": TIMEOUT_MS})
            (grown,) = answer["results"]
            check_error_code(f"topic {name!r} was given no partitions", grown["error_code"], grown["error_message"])
            click.echo(f"topic {printable(name)} has {count(partitions, 'partition')} now")

    run(bootstrap, work)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@bootstrap_option
def delete(names: tuple[str, ...], bootstrap: Bootstrap) -> None:
    """Delete topics and all their records. There is no way back."""

    async def work(cluster: Cluster) -> None:
        answer = await cluster.ask_controller(
            DELETE_TOPICS,
            {"topics": [{"name": name} for name in names], "topic_names": list(names), "timeout_ms": TIMEOUT_MS},
        )
        failures = []
        for row in answer["responses"]:
            try:
                check_error_code(f"topic {row['name']!r} was not deleted", row["error_code"], row["error_message"])
            except ClientError as error:
                failures.append(str(error))
            else:
                click.echo(f"deleted topic {printable(row['name'])}")
        if failures:
            raise ClientError("\n".join(failures))

    run(bootstrap, work)


async def _own_configs(cluster: Cluster, name: str) -> list[tuple[str, str]]:
    resource = {"resource_type": TOPIC, "resource_name": name, "configuration_keys": None}
    answer = await cluster.ask_controller(DESCRIBE_CONFIGS, {"resources": [resource]})
    (found,) = answer["results"]
    check_error_code(f"the settings of topic {name!r}", found["error_code"], found["error_message"])
    return sorted((row["name"], str(row["value"])) for row in found["configs"] if row["config_source"] == OWN)
