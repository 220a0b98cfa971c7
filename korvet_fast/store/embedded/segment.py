"""One file of a log: batches from a base offset on, and what must be known of them to append and to find."""

import os
import struct
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from korvet_fast._native import Batch, batch_headers
from korvet_fast.store.embedded.files import Files, Handle, open_disk
from korvet_fast.store.embedded.index import Index, Summary, read_index

_CHUNK = 1 << 20  # bytes read at once when a file is walked through
_SIZE_AT = struct.Struct(">8xi")  # a v2 batch: base offset, then the length of what follows


class Segment:
    """The state of one segment file. `size` bytes of the file are in use; bytes behind them are rubbish."""

    __slots__ = ("_indexed", "_path", "base", "directory", "end", "first_time", "handle", "index", "max_time", "size")

    def __init__(self, directory: Path, base: int, summary: Summary | None = None, index: Index | None = None) -> None:
        self.directory = directory
        self.base = base
        self._path: Path | None = None
        self.size, self.end, self.first_time, self.max_time = summary or (0, base, -1, -1)
        self.index = index  # kept in memory while the segment grows; None: beside the file
        self._indexed = index.last_position() if index is not None else 0  # where the index's last row points
        # Its file if that is open already: an append would look it up by its path each time.
        self.handle: Callable[[], Handle | None] = _closed

    @property
    def name(self) -> str:
        """The file's name: the base offset in twenty digits, as in Kafka."""
        return f"{self.base:020d}.log"

    @property
    def path(self) -> Path:
        """The file."""
        if self._path is None:  # ten thousand logs are opened before one of them is used
            self._path = self.directory / self.name
        return self._path

    @property
    def index_path(self) -> Path:
        """Where the index is kept."""
        return self.path.with_suffix(".index")

    @property
    def summary(self) -> Summary:
        """The summary that an index file written now holds."""
        return Summary(self.size, self.end, self.first_time, self.max_time)

    def largest_timestamp(self) -> int:
        """The largest record time, in ms; where no record has one, that of the file's last write, as in Kafka.

        Raises `OSError`.
        """
        return self.max_time if self.max_time >= 0 else self.path.stat().st_mtime_ns // 1_000_000

    @classmethod
    def create(cls, directory: Path, base: int) -> "Segment":
        """A new segment with its empty file. Raises `OSError`, also if there is such a file."""
        segment = cls(directory, base, index=Index())
        os.close(os.open(segment.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640))
        return segment

    def note(self, first: int, last: int, timestamp: int, size: int, interval: int) -> None:
        """Count in a batch of `size` bytes that stands at the end now; an index row after `interval` bytes."""
        position = self.size
        if position - self._indexed >= interval:
            assert self.index is not None  # `grow` was called before the first append
            self.index.add(first, position, self.max_time)
            self._indexed = position
        if position == 0:
            self.first_time = timestamp
        if timestamp > self.max_time:
            self.max_time = timestamp
        self.size = position + size
        self.end = last + 1

    def load_index(self, interval: int) -> Index:
        """The index, read from beside the file, or built from the file if that does not fit. Raises `OSError`.

        Takes long for a large file without an index; may be called in a thread.
        """
        kept = read_index(self.index_path)
        if kept is not None and kept[0].size == self.size:
            return kept[1]
        return self.scan(self.size, interval, verify=False).index or Index()

    def grow(self, interval: int) -> None:
        """Make ready to append: the index in memory. Raises `OSError`."""
        self.index = self.load_index(interval)
        self._indexed = self.index.last_position()

    def open(self, files: Files) -> Handle:
        """Its file, which `handle` gives from now on while it is open. Raises `OSError`."""
        handle = files.open(self.path)
        self.handle = weakref.ref(handle)
        return handle

    def scan(self, size: int, interval: int, *, verify: bool, below: int | None = None) -> "Segment":
        """A new segment that knows what the first `size` bytes of the file hold, up to the first that is no batch.

        `verify`: read the disk, not the page cache, and stop at a batch whose checksum fails.
        `below`: stops before the batch that reaches this offset.
        Starts behind the bytes that the index file covers. Raises `OSError`.
        """
        found = Segment(self.directory, self.base, index=Index())
        kept = read_index(self.index_path)
        if kept is not None and kept[0].size <= size and (below is None or kept[0].end <= below):
            found = Segment(self.directory, self.base, kept[0], kept[1])
        handle = open_disk(self.path) if verify else Handle(self.path)
        for batch in walk(handle, found.size, size, verify=verify):
            if batch.base_offset < found.end or (below is not None and batch.last_offset >= below):
                break
            found.note(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size, interval)
        return found


def _closed() -> None:
    """The `handle` of a file that is not open."""


def walk(handle: Handle, position: int, size: int, *, verify: bool) -> Iterator[Batch]:
    """The headers of the whole batches from `position` up to `size`, in order, up to the first that is none.

    Reads a megabyte at a time, more only where one batch is larger. `Batch.start` is relative to the bytes read at a
    time.
    """
    length = _CHUNK
    while position < size:
        data = handle.read(min(length, size - position), position)
        found = batch_headers(data, verify)
        yield from found
        position += covered_size(found)
        if not found:
            length = batch_size(data)
            if not len(data) < length <= size - position:
                return  # not cut short by our chunk, so damaged or torn
        else:
            length = _CHUNK


def covered_size(found: list[Batch]) -> int:
    """How many bytes these batches take of those in which they were found one behind the other."""
    return found[-1].start + found[-1].size if found else 0


def batch_size(data: bytes | memoryview) -> int:
    """How large the batch that begins here says it is, header included; 0 if its first twelve bytes are not there."""
    return _SIZE_AT.unpack_from(data)[0] + _SIZE_AT.size if len(data) >= _SIZE_AT.size else 0
