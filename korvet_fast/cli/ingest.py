"""`korvet-fast ingest`: files into a topic, by Spark."""

import time
from collections.abc import Mapping

import click

from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
from korvet_fast.cli.spark_job import import_jobs, job_bar, pairs, spark_options, spark_session, summary
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.requests import COMPRESSIONS

PATIENCE = 10.0  # seconds for the broker to create a topic
FORMATS = ("parquet", "csv", "json")


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--topic", required=True, help="Where to; the broker makes it if there is none and it makes topics.")
@click.option("--key", metavar="COLUMN", help="The records' keys: records of one key keep their order.")
@click.option(
    "--value",
    metavar="COLUMN",
    default="json",
    show_default=True,
    help="The records' values: a column, or `json`, the whole row as an object.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="What the files are, if their names do not tell.")
@click.option(
    "--schema", metavar="DDL", help="Columns and types, for example 'id INT, name STRING'; else found by Spark."
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
    help="Of the records.",
)
@spark_options
@bootstrap_option
def command(
    files: tuple[str, ...],
    topic: str,
    key: str | None,
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

    \b
    Examples:
      korvet-fast ingest flights.csv --topic flights --key carrier --option nullValue=NA
      korvet-fast ingest 'orders/*.parquet' --topic orders --value payload
    """
    jobs = import_jobs()
    form = form or jobs.guess_format(files)
    if form is None:
        raise click.UsageError(f"the names of the files do not tell what they are: give --format {'|'.join(FORMATS)}")

    await_topic(bootstrap, topic)  # before Spark, which takes seconds to start
    with spark_session("korvet-fast ingest", master, conf) as spark:
        counted = jobs.Observation()
        began = time.perf_counter()
        rows = jobs.read_files(spark, files, form, schema, options)
        records = jobs.count_records(jobs.make_records(rows, key, value), counted)
        addresses = ",".join(map(str, bootstrap))
        settings = {"kafka.compression.type": compression}
        with job_bar(spark, "ingest"):
            jobs.write_records(records, addresses, topic, settings)
        seconds = time.perf_counter() - began
        click.echo(summary(counted.get["rows"], counted.get["bytes"], seconds, f"to topic {topic}"), err=True)


def await_topic(bootstrap: Bootstrap, topic: str) -> None:
    """Let the broker create the topic if it is missing, and wait for it. Raises `click.ClickException`."""
    from korvet_fast.spark.cluster import BlockingCluster

    async def ask(cluster: Cluster) -> None:
        await cluster.metadata([topic], create=True)

    run(bootstrap, ask)  # fails at once, with a hint, if no broker answers
    brokers = BlockingCluster(bootstrap, PATIENCE)
    try:
        brokers.partitions([topic], create=True)
    except ClientError as error:
        raise click.ClickException(str(error)) from None
    finally:
        brokers.close()
