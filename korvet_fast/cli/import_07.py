"""`korvet-fast import-07`: a log directory of Kafka 0.7 into topics of the layout `legacy`, positions kept."""

import asyncio
import time
from functools import partial
from pathlib import Path

import click

from korvet_fast.cli.byte_bar import byte_bar
from korvet_fast.cli.legacy_files import LegacyFilesError, LegacyPartition, find_partitions, measure
from korvet_fast.cli.legacy_load import load
from korvet_fast.cli.session import count
from korvet_fast.cli.store import Offline, offline_options, run_offline
from korvet_fast.config import Settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.topic_config import LAYOUT, LEGACY
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.printable import printable


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@offline_options
def command(directory: Path, offline: Offline) -> None:
    """Load DIRECTORY, a `log.dir` of Kafka 0.6 or 0.7, into topics of the layout `legacy`. No broker may be running.

    DIRECTORY holds <topic>-<partition>/<20 digits>.kafka, and is only read. Every message keeps its position, so
    consumers of 0.7 go on where they stood. Each file is a segment with the time of the file's last change, from which
    retention counts, as in 0.7.

    If the command is interrupted, run it again: it continues where it stopped. What a crash of Kafka left half written
    at the end of a partition is left out, and the command says so.

    \b
    Examples:
      korvet-fast import-07 /var/lib/kafka
      korvet-fast import-07 /var/lib/kafka --store redis://localhost:6379 --set num.partitions=4
    """
    began = time.perf_counter()
    try:
        partitions = find_partitions(directory)
        size = sum(measure(found) - found.segments[0][0] for found in partitions)
        with byte_bar(size) as move:

            async def work(broker: Broker) -> None:
                await _make_topics(broker, partitions)
                for found in partitions:
                    await load(broker, found, partial(move, f"{found.topic}-{found.partition}"))

            if not partitions:
                raise LegacyFilesError(
                    f"{directory} holds no log of Kafka 0.7, no <topic>-<partition>/<20 digits>.kafka: "
                    "give the directory that log.dir names in Kafka's server.properties"
                )
            run_offline(offline, work)
    except LegacyFilesError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or directory}: {error.strerror}. When that is mended, run this again: it goes on there"
        ) from None
    seconds = time.perf_counter() - began
    what = f"{count(len(partitions), 'partition')} ({size / 1e6:,.1f} MB)"
    click.echo(f"{what} of {printable(str(directory))} loaded in {seconds:,.1f} s", err=True)
    _warn_of_retention(partitions, offline[1])


async def _make_topics(broker: Broker, partitions: list[LegacyPartition]) -> None:
    """Make the topics, or more partitions of them. Raises `KorvetError`, `StoreError`, `LegacyFilesError`."""
    totals: dict[str, int] = {}
    for found in partitions:
        totals[found.topic] = max(totals.get(found.topic, 0), found.partition + 1)
    counts, usual = broker.settings.counts("topic.partition.count.map"), broker.settings.number("num.partitions")
    for name, total in totals.items():
        await asyncio.sleep(broker.topics.quota.throttle_ms / 1000)
        topic = broker.topics.get(name)
        if topic is not None and not topic.config.legacy:
            raise LegacyFilesError(
                f"topic {name} is there already, in the layout {topic.config.fixed[LAYOUT]}: delete it, or leave the "
                f"directories {name}-* out"
            )
        try:
            if topic is None:
                await broker.topics.create(name, max(total, counts.get(name) or usual), {LAYOUT: LEGACY})
            elif len(topic.partitions) < total:
                await broker.topics.grow(topic, total)
        except StoreError:
            raise
        except KorvetError as error:
            raise LegacyFilesError(
                f"topic {name} of {total} partitions cannot be made: {error.detail}. Work on a copy without the "
                f"directories {name}-*"
            ) from None


def _warn_of_retention(partitions: list[LegacyPartition], settings: Settings) -> None:
    kept = settings.number("log.retention.ms")
    oldest = min(found.segments[0][1].stat().st_mtime for found in partitions)
    if kept >= 0 and oldest < time.time() - kept / 1000:
        click.echo(
            f"warning: some files are older than log.retention.ms = {kept}, so `serve` deletes what was in them within "
            "minutes; to keep it, start with --set log.retention.ms=-1",
            err=True,
        )
