"""`korvet-fast consume`: the records of a topic, on standard output."""

import contextlib
import sys

import click

from korvet_fast.cli.group_reader import read_in_group
from korvet_fast.cli.line_format import parse_separator
from korvet_fast.cli.offset_target import Target, find_positions, parse_target, say_if_beyond
from korvet_fast.cli.record_format import LETTERS, RecordFormat, json_format, raw_format, template_format
from korvet_fast.cli.record_printer import RecordPrinter, output_watched
from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
from korvet_fast.cli.signals import ended_by_sigterm
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import Consumer
from korvet_fast.client.group_member import PATIENCE
from korvet_fast.client.protocol.errors import ClientError


@click.command()
@click.argument("topic")
@click.option(
    "--from",
    "start",
    type=parse_target,
    metavar="earliest|latest|OFFSET|TIME",
    help="Where to begin; with --group, where the group has committed nothing. A TIME without a zone is UTC.  "
    "[default: latest; with --until-end earliest]",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many records; otherwise go on until Ctrl-C.")
@click.option("-e", "--until-end", is_flag=True, help="End where the partitions end now.")
@click.option("--partition", type=click.IntRange(min=0), help="Read only this partition.")
@click.option(
    "--group", help="Read as a member of this group, which shares the partitions, and commit what was printed."
)
@click.option(
    "--key-separator",
    metavar="TEXT",
    callback=parse_separator,
    help="Print the key too, and TEXT, for example ':' or '\\t', between key and value.",
)
@click.option("-f", "--format", "template", metavar="TEMPLATE", help=rf"Print this of each record: {LETTERS}, \n, \t.")
@click.option("--output", type=click.Choice(["raw", "json"]), default="raw", help="raw: the values; json: as --json.")
@click.option("--json", "output", flag_value="json", help="Print an object per record, as `produce --json` reads it.")
@bootstrap_option
def command(
    topic: str,
    start: Target | None,
    count: int | None,
    until_end: bool,
    partition: int | None,
    group: str | None,
    key_separator: bytes | None,
    template: str | None,
    output: str,
    bootstrap: Bootstrap,
) -> None:
    """Print the values of the records of TOPIC, a line each, and go on with those that come.

    On a terminal control characters are shown as \\x1b; a pipe or a file gets the bytes. Without --group nothing is
    committed: the next call begins anew.

    \b
    Examples:
      korvet-fast consume orders --from earliest --until-end
      korvet-fast consume orders --from 2026-01-31T12:00:00+01:00 --count 10
      korvet-fast consume orders --group billing
      korvet-fast consume orders -e -f '%p %o %k: %s\\n'
      korvet-fast consume orders -e --json | korvet-fast produce orders-copy --json

    In JSON, a key, value or header that is not UTF-8 is written as {"base64": "..."}.
    """
    form = _choose_format(topic, key_separator, template, output == "json")
    if group is not None and partition is not None:
        raise click.UsageError("--group decides which partitions are read: leave --partition out")
    start = start or Target(word="earliest" if until_end else "latest")
    printer = RecordPrinter(form, count)

    async def work(cluster: Cluster) -> None:
        with ended_by_sigterm(), output_watched():
            if group is None:
                await _read_alone(cluster, topic, start, partition, until_end, printer)
            else:
                await read_in_group(cluster, topic, start, group, until_end, printer)

    with contextlib.suppress(KeyboardInterrupt):  # people end the command with Ctrl-C, services with SIGTERM
        run(bootstrap, work) if group is None else run(bootstrap, work, PATIENCE)


def _choose_format(topic: str, key_separator: bytes | None, template: str | None, as_json: bool) -> RecordFormat:
    if (template is not None) + as_json + (key_separator is not None) > 1:
        raise click.UsageError("--format, --json and --key-separator exclude each other: give one")
    terminal = sys.stdout.isatty()
    if as_json:
        return json_format(topic)
    if template is not None:
        return template_format(template, topic, terminal)
    return raw_format(key_separator, terminal)


async def _read_alone(
    cluster: Cluster, topic: str, start: Target, partition: int | None, until_end: bool, printer: RecordPrinter
) -> None:
    partitions = await cluster.partitions(topic)
    if partition is not None:
        if partition not in partitions:
            raise ClientError(f"topic {topic!r} has no partition {partition}, only 0 to {len(partitions) - 1}")
        partitions = [partition]
    positions, ends = await find_positions(cluster, topic, start, partitions)
    if not until_end:
        say_if_beyond(topic, start, ends)

    async def go_on() -> bool:
        return True

    await printer.print_all(Consumer(cluster, topic, positions), ends if until_end else None, go_on)
