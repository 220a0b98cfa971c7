"""`korvet-fast ingest`: files into a topic, by Spark."""

import glob
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
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
from korvet_fast.client.configs import Resource, ResourceType, describe_configs
from korvet_fast.client.protocol.errors import BrokerError, ClientError, broker_error
from korvet_fast.client.protocol.requests import COMPRESSIONS
from korvet_fast.client.security import read_security
from korvet_fast.errors import Errors
from korvet_fast.printable import printable

AUTO_CREATE = "auto.create.topics.enable"
SMALL = 32 << 20  # bytes of files that take less time than Spark's start
UNLIKE_GLOB = re.compile(r"^[A-Za-z][\w+.-]*:|[{\\]")  # an address; patterns that only Hadoop knows
PATIENCE = 10.0  # seconds for the broker to create a topic
FORMATS = ("parquet", "csv", "json")


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--topic",
    required=True,
    help="The topic to write to. A broker with auto.create.topics.enable creates it if it is missing.",
)
@click.option("--key", metavar="COLUMN", help="The records' keys: records of one key keep the order of the files.")
@click.option(
    "--unordered", is_flag=True, help="Faster with --key: without the shuffle that keeps the order of each key."
)
@click.option(
    "--value",
    metavar="COLUMN",
    default="json",
    show_default=True,
    help="The records' values: a column, or `json`, the whole row as an object.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="What the files are, if their names do not tell.")
@click.option(
    "--schema", metavar="DDL", help="Columns and types, such as 'id INT, name STRING'; if not given, Spark infers them."
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="An option of Spark for files of this format, for example nullValue=NA. May be given more than once.",
)
@click.option(
    "--compression",
    type=click.Choice(list(COMPRESSIONS)),
    default="none",
    show_default=True,
    help="How the records are compressed.",
)
@spark_options
@bootstrap_option
def command(
    files: tuple[str, ...],
    topic: str,
    key: str | None,
    unordered: bool,
    value: str,
    form: str | None,
    schema: str | None,
    options: Mapping[str, str],
    compression: str,
    master: str,
    conf: Mapping[str, str],
    bootstrap: Bootstrap,
) -> None:
    """Load FILES into a topic with Spark: Parquet, CSV with a header, or JSON lines.

    FILES are names, patterns or directories, or whatever address Spark reads (s3a://..., hdfs://...). If it fails half
    way, some records are in the topic; run again, it sends all of them again.

    With --key the records of one key are written in the order of their rows, files in the order of their paths. Spark
    reads large files in several tasks at once, so it first brings the rows of each key together (a shuffle and a sort,
    on disk where memory is short).

    \b
    Examples:
      korvet-fast ingest flights.csv --topic flights --key carrier --option nullValue=NA
      korvet-fast ingest 'orders/*.parquet' --topic orders --value payload
    """
    jobs = import_jobs()
    form = form or jobs.guess_format(files)
    if form is None:
        raise click.UsageError(f"the names of the files do not tell what they are: give --format {'|'.join(FORMATS)}")

    check_topic(bootstrap, topic)  # before Spark, which takes seconds to start
    size = check_files(files, master, conf)
    with spark_session("korvet-fast ingest", master, conf, short=size is not None and size < SMALL) as spark:
        counted = jobs.Observation()
        began = time.perf_counter()
        with job_bar(spark, "ingest"):
            rows = jobs.read_files(spark, files, form, schema, options)
            records = jobs.count_records(jobs.make_records(rows, key, value, ordered=not unordered), counted)
            await_topic(bootstrap, topic)  # not earlier: a mistake leaves no topic behind
            settings = {**broker_options(bootstrap), "kafka.compression.type": compression}
            jobs.write_records(records, str(bootstrap), topic, settings)
        seconds = time.perf_counter() - began
        click.echo(summary(counted.get["rows"], counted.get["bytes"], seconds, f"to topic {topic}"), err=True)


def check_topic(bootstrap: Bootstrap, topic: str) -> None:
    """Raise `click.ClickException` if no broker answers, or if the topic is missing and the broker makes none."""

    async def ask(cluster: Cluster) -> str | None:
        (found,) = (await cluster.metadata([topic]))["topics"]
        if not found["error_code"]:
            return None
        error = broker_error(f"topic {topic!r}", found["error_code"])
        if error.error != Errors.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        try:
            described = await describe_configs(cluster, Resource(ResourceType.BROKER, ""), [AUTO_CREATE])
        except BrokerError:
            return None  # the broker does not tell: Metadata asks it to make the topic, and reports its refusal
        makes_none = any(each.value == "false" for each in described)
        return str(error) if makes_none else None

    refusal = run(bootstrap, ask)
    if refusal is not None:
        raise click.ClickException(refusal)


def check_files(files: Sequence[str], master: str, conf: Mapping[str, str]) -> int | None:
    """The bytes of all files, or None if Spark would not look for them on this machine.

    Raises `click.ClickException` for a file that is missing.
    """
    if not reads_here(master, conf) or any(UNLIKE_GLOB.search(file) for file in files):
        return None
    size = 0
    for file in files:
        found = [Path(name) for name in glob.glob(file)]  # noqa: PTH207 (the pattern may be absolute)
        if not found:
            what = "no file fits the pattern" if glob.has_magic(file) else "there is no file or directory"
            raise click.ClickException(f"{what} {printable(file)} in {Path.cwd()}: name what is to be loaded")
        for path in found:
            inside = path.rglob("*") if path.is_dir() else (path,)
            size += sum(each.stat().st_size for each in inside if each.is_file())
    return size


def await_topic(bootstrap: Bootstrap, topic: str) -> None:
    """Let the broker create the topic if it is missing, and wait for it. Raises `click.ClickException`."""
    from korvet_fast.spark.cluster import BlockingCluster

    brokers = BlockingCluster(bootstrap.addresses, PATIENCE, read_security(bootstrap.security))
    try:
        brokers.partitions([topic], create=True)
    except ClientError as error:
        raise click.ClickException(str(error)) from None
    finally:
        brokers.close()
