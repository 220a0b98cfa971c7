"""`korvet-fast export`: a topic into files, by Spark: once, or on and on as records come."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from korvet_fast.cli.offset_target import parse_time
from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
from korvet_fast.cli.signals import asked_to_end
from korvet_fast.cli.spark_bar import job_bar
from korvet_fast.cli.spark_job import (
    broker_options,
    import_jobs,
    pairs,
    reads_here,
    spark_options,
    spark_session,
    summary,
)
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.errors import SettingError
from korvet_fast.printable import printable

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from korvet_fast.spark.jobs import StreamExport

LATEST = "latest"
SMALL = 100_000  # offsets whose records take less time than Spark's start
LOOK = 0.2  # seconds between two looks at a stream


@click.command()
@click.argument("topic")
@click.option(
    "--to",
    "target",
    nargs=2,
    type=(click.Choice(["parquet"]), str),
    required=True,
    metavar="parquet DIR",
    help="The format, and the directory: a name, or whatever address Spark writes.",
)
@click.option(
    "--from",
    "begin",
    metavar="WHERE",
    default="earliest",
    show_default=True,
    help='earliest, a time such as 2026-11-21T10:00 (UTC), or offsets as JSON: {"orders": {"0": 17}}.',
)
@click.option(
    "--until",
    "end",
    metavar="WHERE",
    help="latest, a time, or offsets as JSON. With --follow only latest: end when all there is now is written.",
)
@click.option(
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="An option of the source, for example failOnDataLoss=false. May be given more than once.",
)
@click.option("--headers", is_flag=True, help="Write the records' headers too.")
@click.option("--follow", is_flag=True, help="Go on with what comes in, until Ctrl-C; run again, go on from there.")
@click.option("--checkpoint", metavar="DIR", help="Where --follow notes how far it is.  [default: DIR/_checkpoint]")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How often --follow writes a file.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="OFFSETS",
    help="How many offsets --follow writes at a time at most; all that there are if not given.",
)
@spark_options
@bootstrap_option
def command(
    topic: str,
    target: tuple[str, str],
    begin: str,
    end: str | None,
    given: Mapping[str, str],
    headers: bool,
    follow: bool,
    checkpoint: str | None,
    every: float,
    most: int | None,
    master: str,
    conf: Mapping[str, str],
    bootstrap: Bootstrap,
) -> None:
    """Write the records of a topic to files with Spark: key, value, topic, partition, offset, timestamp, its type.

    With --follow the files are in DIR/batch=0, DIR/batch=1 and so on. A batch that was broken off is written anew by
    the next run, so that each record is there once.

    \b
    Examples:
      korvet-fast export orders --to parquet backup/orders
      korvet-fast export orders --to parquet archive/orders --follow --every 60
    """
    _, directory = target
    if checkpoint is not None and not follow:
        raise click.UsageError("--checkpoint is where --follow notes how far it is: give --follow, or leave it out")
    options = {"subscribe": topic, "includeHeaders": str(headers).lower(), **read_bound("starting", begin)}
    options |= {**given, **broker_options(bootstrap), **read_end(end, follow)}

    async def check(cluster: Cluster) -> None:
        await cluster.partitions(topic)

    jobs = import_jobs()
    run(bootstrap, check)  # before Spark, which takes seconds to start
    check_target(directory, follow, here=reads_here(master, conf))
    with spark_session("korvet-fast export", master, conf, short=not follow and is_small(options)) as spark:
        began = time.perf_counter()
        if follow:
            options |= {} if most is None else {"maxOffsetsPerTrigger": str(most)}
            follower = jobs.StreamExport(directory, checkpoint or f"{directory}/_checkpoint")
            watch(follower.start(spark, options, None if end == LATEST else every), follower)
            rows, size = follower.rows, follower.bytes
        else:
            counted = jobs.Observation()
            with job_bar(spark, "export"):
                jobs.write_files(spark, options, directory, counted)
            rows, size = counted.get["rows"], counted.get["bytes"]
        click.echo(summary(rows, size, time.perf_counter() - began, f"to {directory}"), err=True)


def check_target(directory: str, follow: bool, *, here: bool) -> None:
    """Raise `click.ClickException` if the directory exists, in the words of `jobs.write_files`, which asks Hadoop.

    `follow`: it may exist. `here`: it is one of this machine.
    """
    if here and not follow and Path(directory).exists():
        raise click.ClickException(f"{printable(directory)} exists already: name another directory, or remove it")


def is_small(options: Mapping[str, str]) -> bool:
    """Whether few offsets are to be read. Raises `click.ClickException` if the source cannot read them."""
    try:
        return bool(import_jobs().count_offsets(options) < SMALL)
    except (SettingError, ClientError) as error:
        raise click.ClickException(str(error)) from None


def watch(query: "StreamingQuery", follower: "StreamExport") -> None:
    """Print how much was written, until the stream ends or Ctrl-C ends it."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows written"), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with asked_to_end() as asked, bar:
        task = bar.add_task("", total=None)
        while query.isActive and not asked.wait(LOOK):
            bar.update(task, completed=follower.rows)
        if asked.is_set():
            query.stop()
        else:
            query.awaitTermination()  # raises what made the query fail


def read_end(text: str | None, follow: bool) -> dict[str, str]:
    """`--until` as an option of the source; a stream has none. Raises `click.UsageError`."""
    if not follow:
        return read_bound("ending", text or LATEST)
    if text not in (None, LATEST):
        raise click.UsageError("--follow knows --until latest only: leave --follow out to end elsewhere")
    return {}


def read_bound(side: str, text: str) -> dict[str, str]:
    """`--from` or `--until` as an option of the source. `side`: starting or ending. Raises `click.UsageError`."""
    if text in ("earliest", LATEST) and (side, text) not in (("starting", LATEST), ("ending", "earliest")):
        return {f"{side}Offsets": text}
    if text.startswith("{"):
        return {f"{side}Offsets": text}
    try:
        bound = {f"{side}Timestamp": str(parse_time(text))}
    except ValueError:
        words = "earliest" if side == "starting" else LATEST
        name = "--from" if side == "starting" else "--until"
        raise click.UsageError(
            f"{name} {text!r}: write {words}, a time (2026-11-21T10:00), or offsets as JSON"
        ) from None
    return bound | ({"startingOffsetsByTimestampStrategy": LATEST} if side == "starting" else {})
