"""`korvet-fast consume`: the records of a topic, on standard output."""

import base64
import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice

import click

from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import Consumer, Record, find_offset
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.printable import printable, to_json
from korvet_fast.types import EARLIEST, LATEST


def _parse_start(text: str) -> str | int:
    if text in ("earliest", "latest"):
        return text
    if not text.isdecimal() or len(text) > 18:
        raise click.BadParameter(f"{text!r} is neither earliest nor latest nor an offset (0, 1, 2, ...)")
    return int(text)


@click.command()
@click.argument("topic")
@click.option(
    "--from",
    "start",
    type=_parse_start,
    default="latest",
    show_default=True,
    metavar="earliest|latest|OFFSET",
    help="Where to begin.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many records; otherwise go on until Ctrl-C.")
@click.option("--partition", type=click.IntRange(min=0), help="Read only this one.")
@click.option(
    "--output",
    type=click.Choice(["raw", "json"]),
    default="raw",
    show_default=True,
    help="raw: the values, a line each; on a terminal control characters are shown as \\x1b, a pipe or a file gets the "
    "bytes. json: an object per record.",
)
@bootstrap_option
def command(
    topic: str,
    start: str | int,
    count: int | None,
    partition: int | None,
    output: str,
    bootstrap: Bootstrap,
) -> None:
    """Print the records of TOPIC, and go on with those that come. Nothing is committed: the next call begins anew.

    \b
    Examples:
      korvet-fast consume orders --from earliest --count 10
      korvet-fast consume orders --from 1500 --partition 0 --output json

    In JSON, a key, value or header that is not UTF-8 is written as {"base64": "..."}.
    """
    raw = _shown if sys.stdout.isatty() else _raw
    form = {"raw": raw, "json": lambda record: _json(topic, record)}[output]

    async def work(cluster: Cluster) -> None:
        positions = await _positions(cluster, topic, start, partition)
        await _print(Consumer(cluster, topic, positions), count, form)

    try:
        run(bootstrap, work)
    except KeyboardInterrupt:
        pass  # people end the command with Ctrl-C
    except BrokenPipeError:
        # The program that reads our output has closed it. Without this, Python reports the broken pipe again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _positions(cluster: Cluster, topic: str, start: str | int, partition: int | None) -> dict[int, int]:
    """Where to begin in each partition. If a partition does not hold the offset, reading begins at its nearer end."""
    partitions = await cluster.partitions(topic)
    if partition is not None:
        if partition not in partitions:
            raise ClientError(f"topic {topic!r} has no partition {partition}, only 0 to {len(partitions) - 1}")
        partitions = [partition]
    positions = {}
    for each in partitions:
        if start == "latest":
            positions[each] = await find_offset(cluster, topic, each, LATEST)
            continue
        first = await find_offset(cluster, topic, each, EARLIEST)
        if isinstance(start, int) and start > first:
            first = min(start, await find_offset(cluster, topic, each, LATEST))
        positions[each] = first
    return positions


async def _print(consumer: Consumer, count: int | None, form: Callable[[Record], bytes]) -> None:
    out = sys.stdout.buffer
    left = count
    async for records in consumer.poll():
        lines = [form(record) for record in _at_most(records, left)]
        out.write(b"".join(lines))
        out.flush()
        if left is not None:
            left -= len(lines)
            if left == 0:
                return


def _at_most(records: Iterator[Record], count: int | None) -> Iterator[Record]:
    return records if count is None else islice(records, count)


def _raw(record: Record) -> bytes:
    return (record.value or b"") + b"\n"


def _shown(record: Record) -> bytes:
    """The value for a terminal: one line of printable letters; bytes that are not UTF-8 appear as \\xff."""
    return printable(str(record.value or b"", "utf-8", "backslashreplace")).encode() + b"\n"


def _json(topic: str, record: Record) -> bytes:
    fields = {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }
    return to_json(fields).encode() + b"\n"


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
