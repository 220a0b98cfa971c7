"""Log directories of Kafka 0.7: `<topic>-<partition>/<20 digits>.kafka`, read and written. Blocking; knows no broker.

A file is message entries back to back, each `int32 LENGTH` and LENGTH bytes; its name is the position of its first
byte (`kafka/log/Log.scala` of 0.7.2).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from korvet_fast._native import whole_messages

_FOLDER = re.compile(r"(.+)-([0-9]{1,9})")
_SEGMENT = re.compile(r"[0-9]{20}\.kafka")


class LegacyFilesError(Exception):
    """The files are no log of Kafka 0.7. The text names the file and the position in it."""


class LegacyPartition(NamedTuple):
    """A partition's directory. `segments`: position of the first byte, and the file; in order, without gaps."""

    topic: str
    partition: int
    segments: tuple[tuple[int, Path], ...]


class Messages(NamedTuple):
    """Whole messages, as they stand in the file from this position on."""

    position: int
    data: bytes

    @property
    def end(self) -> int:
        return self.position + len(self.data)


def find_partitions(directory: Path) -> list[LegacyPartition]:
    """The partitions below a `log.dir`, by name. Raises `LegacyFilesError` where segments do not join."""
    found = []
    for folder in sorted(path for path in directory.iterdir() if path.is_dir()):
        name = _FOLDER.fullmatch(folder.name)
        files = sorted(path for path in folder.iterdir() if _SEGMENT.fullmatch(path.name))
        if name is None or not files:
            continue
        segments = tuple((int(file.stem), file) for file in files)
        for (start, file), (following, after) in pairwise(segments):
            if start + file.stat().st_size != following:
                raise LegacyFilesError(
                    f"{after} does not begin where {file.name} ends, at {start + file.stat().st_size}"
                )
        found.append(LegacyPartition(name[1], int(name[2]), segments))
    return found


def read_messages(partition: LegacyPartition, start: int, most: int) -> Iterator[Messages]:
    """The messages from position `start` on, about `most` bytes at a time, 4 at least (a larger message comes alone).

    `start` is the end of the messages read before, or 0. Bytes behind the last message that is whole and has a good CRC
    are left out at the end of the last segment, as Kafka cuts them off after a crash: the caller compares the last
    `end` with `measure`. Raises `LegacyFilesError` if such bytes are anywhere else, or whole messages follow them.
    """
    last = partition.segments[-1][0]
    for base, file in partition.segments:
        position, size = max(base, start), base + file.stat().st_size
        with file.open("rb") as source:
            source.seek(position - base)
            while position < size:
                data = source.read(most)
                whole = whole_messages(data)
                if whole == 0 and len(data) < size - position:  # a message that is larger than `most`
                    data += source.read(int.from_bytes(data[:4]) + 4 - len(data)) if len(data) >= 4 else b""
                    whole = whole_messages(data)
                if whole == 0:
                    at = position - base
                    if base != last:
                        raise LegacyFilesError(f"{file}: no whole message with a good CRC at byte {at}")
                    if whole_messages(data[4 + int.from_bytes(data[:4]) :]):
                        raise LegacyFilesError(
                            f"{file}: the message at byte {at} is damaged, and whole messages follow it, so this is no "
                            f"torn end. To give up the {size - position} bytes from there on, as Kafka does after a "
                            f"crash, cut a copy of the file: truncate -s {at} FILE"
                        )
                    return
                yield Messages(position, data[:whole])
                position += whole
                source.seek(position - base)


def measure(partition: LegacyPartition) -> int:
    """The position at which the last file ends, a torn tail included."""
    base, file = partition.segments[-1]
    return base + file.stat().st_size


def write_messages(folder: Path, messages: Iterable[Messages], segment_bytes: int) -> Iterator[int]:
    """Write a partition's directory; yields the position after each piece. The first piece gives the first file's name.

    A file is ended before a piece if it is larger than `segment_bytes`, so a piece is never split, as in 0.7. Raises
    `FileExistsError` if the directory is there already, `LegacyFilesError` where pieces do not join.
    """
    folder.mkdir(parents=True)
    file, base, position = None, -1, -1
    try:
        for piece in messages:
            if position >= 0 and piece.position != position:
                raise LegacyFilesError(f"{folder}: {position} is followed by {piece.position}")
            if file is None or piece.position - base > segment_bytes:
                if file is not None:
                    file.close()
                base = piece.position
                file = (folder / f"{base:020d}.kafka").open("xb")
            file.write(piece.data)
            position = piece.end
            yield position
    finally:
        if file is not None:
            file.close()
