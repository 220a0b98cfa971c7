"""`korvet-fast produce`: the lines of a file, or of standard input, as records."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from korvet_fast.cli.line_format import parse_headers, parse_separator
from korvet_fast.cli.line_sender import Lines, LineSender
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.producer import AsyncProducer
from korvet_fast.client.producer.message import Headers
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.requests import COMPRESSIONS
from korvet_fast.printable import printable

CHUNK = 1024 * 1024  # bytes read at a time
LONGEST_LINE = 100 << 20  # bytes: the largest request that a broker accepts by default
PATIENCE = 30.0  # seconds until a line has to be stored


@click.command()
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--partition",
    type=click.IntRange(min=0),
    help="Send every record to this partition. Otherwise the key chooses the partition; records without a key go to "
    "all partitions in turn.",
)
@click.option("--key", help="The key of every record; they all go to its partition.")
@click.option(
    "--key-separator",
    metavar="TEXT",
    callback=parse_separator,
    help="What stands in each line between key and value, for example ':' or '\\t'.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    callback=parse_headers,
    help="A header of every record. May be given more than once.",
)
@click.option("--json", "as_json", is_flag=True, help="Each line is an object, as `consume --json` prints them.")
@click.option(
    "--acks",
    type=click.Choice(["1", "all"]),
    default="all",
    show_default=True,
    help="A record counts as stored when its leader has it (1), or when it is as safe as the topic asks for (all).",
)
@click.option(
    "--compression",
    type=click.Choice(list(COMPRESSIONS)),
    default="none",
    show_default=True,
    help="How the records are compressed.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="How many records a second are sent at most; as many as possible if not given.",
)
@bootstrap_option
def command(
    topic: str,
    file: BinaryIO,
    partition: int | None,
    key: str | None,
    key_separator: bytes | None,
    headers: Headers,
    as_json: bool,
    acks: str,
    compression: str,
    rate: float | None,
    bootstrap: Bootstrap,
) -> None:
    """Send the lines of FILE, or of standard input, to TOPIC: one record each, without its line end.

    With --acks all each line is stored once, whatever fails on the way; with 1 nothing is sent twice. A JSON line has
    any of the fields key, value, headers, partition and timestamp.

    \b
    Examples:
      korvet-fast produce orders orders.txt --compression zstd
      echo 'order-1:3 gadgets' | korvet-fast produce orders --key-separator : --header source=web
      echo '{"key": "order-1", "value": "3 gadgets"}' | korvet-fast produce orders --json
      tail -f app.log | korvet-fast produce logs --acks 1
    """
    if (key is not None) + (key_separator is not None) + as_json > 1:
        raise click.UsageError("--key, --key-separator and --json exclude each other: give one")
    chosen = None if key is None else key.encode(errors="surrogateescape")
    lines = Lines(topic, partition, chosen, headers, key_separator, as_json, rate)

    async def work(cluster: Cluster) -> None:
        partitions = await cluster.partitions(topic, create=True)
        if partition is not None and partition not in partitions:
            raise ClientError(f"topic {topic!r} has no partition {partition}, only 0 to {len(partitions) - 1}")
        if file.isatty():
            click.echo("a record on each line; Ctrl-D ends", err=True)
        with _silent(logging.getLogger(AsyncProducer.__module__)):
            async with _make_producer(bootstrap, acks, compression) as producer:
                await _send_all(file, LineSender(producer, lines), printable(topic))

    run(bootstrap, work, patience=PATIENCE)


@contextmanager
def _silent(log: logging.Logger) -> Iterator[None]:
    """No warnings of messages that were not delivered: the command itself says so, and once."""
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


async def _send_all(file: BinaryIO, sender: LineSender, topic: str) -> None:
    """Send the whole file, and say how many records are stored, also where it ends early."""
    try:
        with _progress(file) as advance:
            await _send_lines(file, sender, advance)
    except ClientError as error:
        raise ClientError(f"{str(error).rstrip('.')}; {count(sender.stored, 'record')} stored before") from None
    except asyncio.CancelledError:  # Ctrl-C: what was sent is waited for; a second one ends it at once
        try:
            await sender.finish()
        finally:
            click.echo(f"\n{count(sender.stored, 'record')} stored in topic {topic}, the rest was not sent", err=True)
        raise
    click.echo(f"{count(sender.stored, 'record')} stored in topic {topic}", err=True)


def _make_producer(bootstrap: Bootstrap, acks: str, compression: str) -> AsyncProducer:
    """A producer that takes a line of any length, and ends at the first that fails."""
    largest = LONGEST_LINE + 1024  # bytes: a line and the record around it
    return AsyncProducer(
        bootstrap.addresses,
        **bootstrap.security,
        acks=acks,
        compression_type=compression,
        retries=None if acks == "all" else 0,
        on_failure="stop",
        delivery_timeout_ms=PATIENCE * 1000,
        max_request_size=largest,
        buffer_memory=4 * largest,
    )


async def _send_lines(file: BinaryIO, sender: LineSender, advance: Callable[[int], None]) -> None:
    begun: list[bytes] = []  # the pieces read so far of an unfinished line
    length = 0
    while chunk := await _read(file.fileno()):
        advance(len(chunk))
        *ends, last = chunk.split(b"\n")
        if ends:
            ends[0] = b"".join((*begun, ends[0]))
            begun, length = [], 0
            await sender.send(ends)
        begun.append(last)
        length += len(last)
        if length > LONGEST_LINE:
            raise ClientError(f"a line is longer than {LONGEST_LINE >> 20} MiB; a record that large is not taken")
    if length:
        await sender.send([b"".join(begun)])
    await sender.finish()


async def _read(descriptor: int) -> bytes:
    """The next bytes, at most `CHUNK`; empty at the end. Waits in the event loop, where Ctrl-C ends it at once."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:  # the event loop cannot watch a file on disk, which is always ready
        return os.read(descriptor, CHUNK)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, CHUNK)


@contextmanager
def _progress(file: BinaryIO) -> Iterator[Callable[[int], None]]:
    """Draw a progress bar if standard error is a terminal and the input is not typed there."""
    if not sys.stderr.isatty() or file.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    size = os.fstat(file.fileno()).st_size or None
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=size)
        yield lambda done: bar.advance(task, done)
