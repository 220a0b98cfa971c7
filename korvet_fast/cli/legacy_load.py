"""One partition of Kafka 0.7's files into a log of the layout `legacy`: from where it stopped before, to the end."""

import asyncio
from collections.abc import Callable
from typing import Final

import click

from korvet_fast._native import up_convert
from korvet_fast.cli.legacy_files import LegacyFilesError, LegacyPartition, Messages, measure, read_messages
from korvet_fast.core.broker import Broker
from korvet_fast.core.partition.legacy_partition import LegacyPartition as PartitionOfBroker
from korvet_fast.core.partition.legacy_partition import OffsetBatches
from korvet_fast.errors import CodecError
from korvet_fast.printable import printable

_PIECE: Final = 4 << 20  # bytes read and appended at a time
_BATCH: Final = 64 << 10  # bytes of a batch: a client reads from any position, and each time the whole batch is read
_LARGEST: Final = 1 << 30  # bytes of a payload: whatever 0.7 has taken
_EXPANDED: Final = 1 << 30  # bytes that the wrappers of a piece may decompress to
_COMPARED: Final = 4096  # bytes before the place to go on at: they must be those of the files


async def load(broker: Broker, files: LegacyPartition, move: Callable[[int], None]) -> None:
    """Append what the log does not have. `move` is told of bytes that are done.

    Raises `KorvetError`, `StoreError`; `LegacyFilesError` where the files are damaged, or the log has other messages.
    """
    name = f"{files.topic}-{files.partition}"
    partition = broker.partition(files.topic, files.partition)
    assert isinstance(partition, PartitionOfBroker)
    times = {start: int(file.stat().st_mtime * 1000) for start, file in files.segments}
    first, *_ = times
    if partition.log.end <= first:
        await _begin(partition, files, times[first])
    else:
        await _compare(partition, files)
    move(partition.log.end - first)
    pieces = read_messages(files, partition.log.end, _PIECE)
    time = times[max(start for start in times if start <= partition.log.end)]
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        time = times.get(piece.position, time)
        batches = await asyncio.to_thread(_convert, name, piece)
        await asyncio.gather(*partition.append_messages(batches, time, piece.position in times))
        move(len(piece.data))
    end, there = partition.log.end, measure(files)
    if end < there:
        _, file = files.segments[-1]
        click.echo(
            f"{printable(name)}: the last {there - end} bytes of {printable(str(file))}, from position {end}, are no "
            "whole message: left out, as Kafka cuts them off after a crash",
            err=True,
        )


def _convert(name: str, piece: Messages) -> OffsetBatches:
    try:
        batches = up_convert(piece.data, _LARGEST, _EXPANDED, _BATCH)
    except CodecError as error:
        raise LegacyFilesError(
            f"{name}: a compressed message between positions {piece.position} and {piece.end} is damaged ({error}), "
            "and Kafka 0.7 could not have given it to a consumer either: what lies before is loaded"
        ) from None
    if sum(many for _, many in batches) != len(piece.data):
        raise LegacyFilesError(
            f"{name}: between positions {piece.position} and {piece.end} is a compressed message that holds more "
            "messages than it has bytes, and those cannot all have offsets of their own: what lies before is loaded"
        )
    return batches


async def _begin(partition: PartitionOfBroker, files: LegacyPartition, time: int) -> None:
    """Let the log start where the files do: 0.7 has deleted the messages before."""
    (first, _), *_ = files.segments
    log = partition.log
    if log.start < log.end and await partition.read_messages(log.start, log.end):
        raise _others(files, log.end)
    if log.start < first:
        await partition.begin_at(first, time)


async def _compare(partition: PartitionOfBroker, files: LegacyPartition) -> None:
    """Raises `LegacyFilesError` unless the end of the log is in the files."""
    end = partition.log.end
    base, file = max(segment for segment in files.segments if segment[0] < end)
    start = max(base, partition.log.start, end - _COMPARED)
    with file.open("rb") as source:
        source.seek(start - base)
        wanted = source.read(end - start)
    if len(wanted) < end - start or b"".join(await partition.read_messages(start, end)) != wanted:
        raise _others(files, end)


def _others(files: LegacyPartition, end: int) -> LegacyFilesError:
    return LegacyFilesError(
        f"partition {files.partition} of topic {files.topic} has messages up to position {end} that are not those of "
        f"{files.segments[0][1].parent}: load into another store, or delete the topic first"
    )
