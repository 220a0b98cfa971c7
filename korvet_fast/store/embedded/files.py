"""Files on disk: descriptors and mappings within limits, writes that land whole, directories that remember them."""

import errno
import os
import resource
from collections import OrderedDict
from pathlib import Path

from korvet_fast._native import FileMapping

_WINDOWS = 16  # mapped at once
_STEP = 16 << 20  # bytes between two windows' starts; each is twice as long, so that no read of this size leaves it


class Handle:
    """An open file. It is closed when the last one who uses it lets go, so that a thread may still be reading."""

    __slots__ = ("__weakref__", "fd")

    def __init__(self, path: Path) -> None:
        self.fd = -1
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Files:
    """Keeps the files used last open, at most `limit` of them. Belongs to the event loop's thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open: OrderedDict[Path, Handle] = OrderedDict()
        self._windows: OrderedDict[tuple[Path, int], FileMapping] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, path: Path) -> Handle:
        """The open file at `path`, which exists. Raises `OSError`."""
        handle = self._open.get(path)
        if handle is not None:
            self._open.move_to_end(path)
            return handle
        if len(self._open) >= self.limit:
            self._open.popitem(last=False)
        handle = self._open[path] = Handle(path)
        return handle

    def view(self, path: Path, position: int, length: int) -> memoryview | None:
        """Bytes of the file at `path` as they lie in the page cache; None if they cannot be had so. Raises `OSError`.

        Nobody may cut the file within them while the view is in use. What was mapped last stays so, and counts to what
        the process has resident: about 256 MiB at most.
        """
        if length > _STEP:
            return None
        number, start = divmod(position, _STEP)
        window = self._windows.get((path, number))
        if window is None:
            if len(self._windows) >= _WINDOWS:
                self._windows.popitem(last=False)
            try:
                window = FileMapping(self.open(path).fd, number * _STEP, 2 * _STEP)
            except MemoryError:
                return None  # the process may not map as much
            except OSError as error:
                if error.errno != errno.ENODEV:  # the file system maps nothing
                    raise
                return None
            self._windows[path, number] = window
        else:
            self._windows.move_to_end((path, number))
        return window.cached(start, start + length)

    def forget(self, path: Path) -> None:
        """Let go of the file at `path`, which is about to be removed or renamed."""
        self._open.pop(path, None)
        for key in [key for key in self._windows if key[0] == path]:
            del self._windows[key]

    def clear(self) -> None:
        """Let go of all files."""
        self._open.clear()
        self._windows.clear()


def default_limit() -> int:
    """How many files to keep open: an eighth of what the process may have, so that sockets find room."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 4096
    return max(16, min(4096, soft // 8))


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a small file: it holds either all of `data` or what it held before. Raises `OSError`.

    Without `sync` this survives a crash of the process only; the machine's may leave anything.
    """
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fresh.replace(path)
    if sync:
        sync_directory(path.parent)
