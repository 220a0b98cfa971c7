"""`korvet-fast export-07`: topics of the layout `legacy` as a log directory of Kafka 0.7."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from korvet_fast._native import whole_messages
from korvet_fast.cli.byte_bar import byte_bar
from korvet_fast.cli.legacy_files import LegacyFilesError, Messages, write_messages
from korvet_fast.cli.session import count
from korvet_fast.cli.store import Offline, offline_options, run_offline
from korvet_fast.core.broker import Broker
from korvet_fast.core.partition.legacy_partition import LegacyPartition
from korvet_fast.errors import StoreError
from korvet_fast.printable import printable

_PIECE: Final = 4 << 20  # bytes read and written at a time


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--topic", "topics", multiple=True, help="Only this topic. May be given more than once.")
@offline_options
def command(directory: Path, topics: tuple[str, ...], offline: Offline) -> None:
    """Write the topics of the layout `legacy` below DIRECTORY, as a `log.dir` of Kafka 0.7. No broker may be running.

    DIRECTORY is created, and must not hold any of the partitions. Messages keep their positions. A file ends as
    soon as it is larger than the topic's segment.bytes.

    \b
    Examples:
      korvet-fast export-07 /var/lib/kafka
      korvet-fast export-07 backup --topic clicks --store redis://localhost:6379
    """
    began = time.perf_counter()
    found: list[LegacyPartition] = []

    async def work(broker: Broker) -> None:
        found.extend(_find(broker, topics))
        with byte_bar(sum(map(_measure, found))) as move:
            for partition in found:
                await asyncio.to_thread(_write, directory, partition, move, asyncio.get_running_loop())

    try:
        run_offline(offline, work)
    except LegacyFilesError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or directory}: {error.strerror}. Delete what was written, or give another directory"
        ) from None
    seconds, size = time.perf_counter() - began, sum(map(_measure, found))
    what = f"{count(len(found), 'partition')} ({size / 1e6:,.1f} MB)"
    click.echo(f"{what} written to {printable(str(directory))} in {seconds:,.1f} s", err=True)


def _find(broker: Broker, names: tuple[str, ...]) -> list[LegacyPartition]:
    """The partitions with something in them. Raises `KorvetError`, and `LegacyFilesError` for a topic that is none."""
    found: list[LegacyPartition] = []
    chosen = [broker.topics.get(name) for name in names] if names else list(broker.topics)
    for name, topic in zip(names, chosen, strict=False):
        if topic is None or not topic.config.legacy:
            raise LegacyFilesError(f"there is no topic {name} of the layout legacy in this store")
    for topic in chosen:
        if topic is not None and topic.config.legacy:
            for index in range(len(topic.partitions)):
                partition = broker.partition(topic.name, index)
                assert isinstance(partition, LegacyPartition)
                found += [partition] if _measure(partition) else []
    return found


def _measure(partition: LegacyPartition) -> int:
    return partition.high_watermark.offset - partition.log.start


def _write(
    directory: Path, partition: LegacyPartition, move: Callable[[str, int], None], loop: asyncio.AbstractEventLoop
) -> None:
    """Write a partition's files, on a thread. Raises `OSError`, `LegacyFilesError`, `KorvetError`, `StoreError`."""
    folder, at = directory / f"{partition.topic}-{partition.index}", partition.log.start
    pieces = _read(partition, loop)
    for end in write_messages(folder, pieces, partition.config.segment_limits.size):
        move(folder.name, end - at)
        at = end


def _read(partition: LegacyPartition, loop: asyncio.AbstractEventLoop) -> Iterator[Messages]:
    at, size = partition.log.start, _PIECE
    while at < (end := partition.high_watermark.offset):
        reading = partition.read_messages(at, min(end, at + size))
        data = b"".join(asyncio.run_coroutine_threadsafe(reading, loop).result())
        whole = whole_messages(data)
        if whole:
            yield Messages(at, data[:whole])
            at, size = at + whole, _PIECE
        elif len(data) < min(end - at, size):
            raise StoreError(f"{partition.name}: the messages from position {at} on were lost, so no file can hold it")
        else:
            size *= 2  # a message that is larger
