"""Writes docs/cli.md, docs/configuration.md and docs/metrics.md from the tables in the code: `make reference`."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import click

from korvet_fast.cli import root
from korvet_fast.cli.acl import AclListing
from korvet_fast.cli.cluster_description import BrokerListing, ClusterInfo
from korvet_fast.cli.topic import TopicListing
from korvet_fast.cli.topic_description import PartitionDescription, TopicDescription
from korvet_fast.client.configs import Config
from korvet_fast.client.groups import GroupDescription, GroupListing, PartitionProgress
from korvet_fast.config import PLACES, variable
from korvet_fast.config_def import SETTINGS, show
from korvet_fast.config_kept import NO_EFFECT
from korvet_fast.setting import Setting
from korvet_fast.wire.http.metrics_table import EXPORTER, METRICS

HERE = Path(__file__).parent

# What prints which rows. A listing is a list of them.
LISTINGS: dict[str, tuple[type[Any], ...]] = {
    "topic list": (TopicListing,),
    "topic describe": (TopicDescription, PartitionDescription),
    "acl list": (AclListing,),
    "group list": (GroupListing,),
    "group describe": (GroupDescription, PartitionProgress),
    "config list, config describe": (Config,),
    "cluster info (one object, not a list)": (ClusterInfo, BrokerListing),
}

CLI = """# The command line

Written by `make reference` from the commands themselves; do not edit this page.

Exit codes: 0 the command did its work, 1 it failed, 2 the command line is wrong; `doctor` and `cluster info` also end
with 1 where they find what keeps clients from their work. An error is one sentence on standard
error. A command ends with 0 when the program that reads its output closes the pipe, and with 1 when its output cannot
be written, for example because the disk is full.

`--bootstrap`, `--store`, `--listen`, `--advertise` and `--zookeeper` may also be given as `KORVET_BOOTSTRAP` and so
on, or in the TOML file of `--config-file`: [configuration](configuration.md). An address is `HOST:PORT`, or
`kafka://HOST:PORT`. A time is written as in ISO 8601 (`2026-01-31T12:00:00+01:00`); without a zone it is UTC, as in
Kafka's tools.
"""

COMPLETION = """
## Completion in a shell

| shell | |
|---|---|
| bash | `eval "$(korvet-fast completion bash)"` in `~/.bashrc` |
| zsh | `eval "$(korvet-fast completion zsh)"` in `~/.zshrc` |
| fish | `korvet-fast completion fish > ~/.config/fish/completions/korvet-fast.fish` |
"""

JSON = """
## JSON

With `--json` a listing is a list of objects. Fields are added in later versions, and none is renamed. What is not
known is null.

`consume --json` prints an object on each line, and `produce --json` reads the same: `topic`, `partition`, `offset`,
`timestamp` (ms), `key`, `value` and `headers`, a list of pairs. A key, a value or the value of a header is a string,
or null, or `{"base64": "..."}` where the bytes are not UTF-8. `produce` takes any of these fields, and ignores `topic`
and `offset`. `group reset --json` prints `topic`, `partition`, `before` (null if nothing was
committed) and `after`.
"""

CONFIGURATION = """# Configuration

Written by `make reference` from the table of settings; do not edit this page.

A setting is taken from the first of: `--set NAME=VALUE`, the environment, the TOML file of `--config-file FILE`, the
default. `korvet-fast config list` shows what is in force in a running broker, and where it comes from. An unknown
name is an error that names the nearest known one.

```toml
store = "file:/var/lib/korvet"
listen = ["kafka://127.0.0.1:9092"]
bootstrap = "127.0.0.1:9092"
"log.retention.ms" = 86400000

[num]
partitions = 4
```

## Places

These options of commands may also stand in the environment or in the file. Several addresses are separated by commas,
or are a list in the file. Variables that Kubernetes sets for a Service named `korvet…` (`*_SERVICE_HOST`,
`*_SERVICE_PORT*`, `*_PORT*`) are ignored.

| file | environment | option |
|---|---|---|
"""

SETTINGS_HEAD = """
## Settings

Those that say "of a topic" are the broker's default for it: `korvet-fast config set NAME=VALUE --topic TOPIC`
changes one topic's. All others are read when the broker starts.

"""

KEPT_HEAD = """
## Settings that change nothing

Kafka's tools set these and ask for them, so the broker accepts them, keeps them and shows them. None has an effect
here: [topic settings](topic-settings.md) says why.

"""

METRICS_HEAD = """# Metrics

Written by `make reference` from the table of metrics; do not edit this page.

A listener `http://` serves them to Prometheus at `/metrics` ([operations](operations.md#health-and-metrics)). Where
Kafka has a metric, the name is the one that Prometheus's JMX exporter makes of Kafka's with its example
configuration; Kafka's own name stands in the last column. Lag has the names of kafka_exporter. Times are in
milliseconds, as in Kafka.

- No label holds what clients can make by the thousand: a client id, a member, an address.
- Topics and committed offsets have rows up to `metrics.max.partitions`, in the order of their names: first the topics
  and groups that take a tenth of it at most. Topics without rows count in the totals, the lag of groups without rows
  nowhere: `korvet_metrics_left_out` says how many topics and offsets that are; raise the setting if it is not 0.
- Counters begin at 0 when the broker starts. Rows of a partition come from the broker that leads it, rows of a group
  from the broker that coordinates it.
- Lag is given where both are the same broker. Elsewhere subtract `kafka_consumergroup_current_offset` from
  `kafka_topic_partition_current_offset` of the leader. In the layout `entries` offsets follow the clock, and a
  difference is no number of records: a group that has read everything has lag 0 there, any other has no row.

[A Grafana dashboard](grafana-korvet-fast.json) shows the most important ones: import the file, and choose your
Prometheus.

| metric | type | labels | | Kafka's name |
|---|---|---|---|---|
"""


def write_cli() -> str:
    """The page about the commands."""
    pages = [CLI, *(_describe(command, words) for words, command in _walk(root, ())), COMPLETION, JSON]
    for command, rows in LISTINGS.items():
        pages.append(f"\n### {command}\n" + "".join(map(_fields, rows)))
    return "".join(pages)


def write_configuration() -> str:
    """The page about the settings."""
    places = "".join(f"| `{name}` | `{variable(name)}` | `--{name}` |\n" for name in PLACES)
    used, kept = ("".join(_setting(row) for row in SETTINGS.values() if row.effect is each) for each in (True, False))
    return CONFIGURATION + places + SETTINGS_HEAD + used + KEPT_HEAD + kept


def _setting(row: Setting) -> str:
    default = f"default `{show(row.default)}`" if show(row.default) else "empty by default"
    topic = f" Of a topic: `{row.topic}`." if row.topic else ""
    doc = row.doc.removesuffix(NO_EFFECT)
    return f"- **`{row.name}`**, {default}: {doc} Value: {row.legal}.{topic}\n".replace("<", "&lt;")


def write_metrics() -> str:
    """The page about the metrics."""
    rows = []
    for metric in METRICS:
        source = "" if metric.source in ("", EXPORTER) else f"`{metric.source}`"
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.doc} | {source} |\n")
    return METRICS_HEAD + "".join(rows)


def _walk(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if words:
        yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _walk(found, (*words, name))


def _describe(command: click.Command, words: tuple[str, ...]) -> str:
    name = " ".join(("korvet-fast", *words))
    names = root.context_settings["help_option_names"]
    context = click.Context(command, info_name=name, terminal_width=100, help_option_names=names)
    return f"\n{'#' * (1 + len(words))} {name}\n\n```text\n{command.get_help(context)}\n```\n"


def _fields(row: type[NamedTuple]) -> str:
    documentation = (inspect.getdoc(row) or "").replace("\n", " ")
    lines = [f"| `{name}` | {_kind(kind)} |\n" for name, kind in get_type_hints(row).items()]
    return f"\n{documentation}\n\n| field | type |\n|---|---|\n" + "".join(lines)


def _kind(kind: Any) -> str:
    names = {int: "number", str: "text", bool: "true or false", type(None): "null", dict: "object", list: "list"}
    if kind in names:
        return names[kind]
    origin = get_origin(kind)
    if origin is list:
        return f"list of {_kind(get_args(kind)[0])}"
    if origin is dict:
        return "object"
    if origin is None:
        return "object, below"
    return " or ".join(map(_kind, get_args(kind)))


if __name__ == "__main__":
    (HERE / "cli.md").write_text(write_cli(), encoding="utf-8")
    (HERE / "configuration.md").write_text(write_configuration(), encoding="utf-8")
    (HERE / "metrics.md").write_text(write_metrics(), encoding="utf-8")
