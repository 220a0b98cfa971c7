"""Files on disk: descriptors and mappings within limits, writes that land whole, directories that remember them."""

import errno
import mmap
import os
import resource
from collections import OrderedDict
from pathlib import Path

from korvet_fast._native import FileMapping

_WINDOWS = 16  # mapped at once
_BLOCK = 4096  # bytes; disks want reads past the page cache to begin and end at such borders
LENGTH = 16 << 20  # bytes that a view may have: half of a window; windows begin at multiples of it, and overlap


class Handle:
    """An open file. It is closed when its last user lets go of it, as a thread may still be reading."""

    __slots__ = ("__weakref__", "fd")

    def __init__(self, path: Path, flags: int = os.O_RDWR) -> None:
        self.fd = -1
        self.fd = os.open(path, flags | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def read(self, length: int, position: int) -> bytes | memoryview:
        """`length` bytes from `position` on; fewer at the end of the file. Raises `OSError`."""
        return os.pread(self.fd, length, position)


class DiskHandle(Handle):
    """A file whose bytes are read from the disk, past the page cache.

    After a write that failed, the page cache keeps bytes that the disk does not have, and calls them clean.
    """

    __slots__ = ("_blocks",)

    def __init__(self, path: Path) -> None:
        """Raises `OSError`; EINVAL where the file system cannot do this."""
        super().__init__(path, os.O_RDONLY | os.O_DIRECT)
        self._blocks = memoryview(b"")

    def read(self, length: int, position: int) -> bytes | memoryview:
        """See `Handle.read`; it holds until the next one. Whole blocks are read, into pages, as the kernel demands."""
        first = position % _BLOCK
        wanted = first + length
        if len(self._blocks) < wanted:
            self._blocks = memoryview(mmap.mmap(-1, wanted + -wanted % _BLOCK))
        blocks = self._blocks[: wanted + -wanted % _BLOCK]
        got = 0
        while got < wanted:
            count = os.preadv(self.fd, [blocks[got:]], position - first + got)
            got += count
            if got % _BLOCK or not count:  # the end of the file
                break
        return blocks[first : min(got, wanted)]


def open_disk(path: Path) -> Handle:
    """A file that is read from the disk, as far as its file system allows. Raises `OSError`."""
    try:
        return DiskHandle(path)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    handle = Handle(path, os.O_RDONLY)
    os.posix_fadvise(handle.fd, 0, 0, os.POSIX_FADV_DONTNEED)  # the next best
    return handle


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

        A file that ends before them has none: its last page is cached whole, with zeros behind the file's end.
        Nobody may cut the file within them while the view is in use. The stretches mapped last stay mapped, and count
        as resident memory of the process: about 256 MiB at most.
        """
        if length > LENGTH:
            return None
        descriptor = self.open(path).fd
        if os.fstat(descriptor).st_size < position + length:
            return None
        number, start = divmod(position, LENGTH)
        window = self._windows.get((path, number))
        if window is None:
            if len(self._windows) >= _WINDOWS:
                self._windows.popitem(last=False)
            try:
                window = FileMapping(descriptor, number * LENGTH, 2 * LENGTH)
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
    """How many files to keep open: an eighth of the process's limit, so that sockets find room."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 4096
    return max(16, min(4096, soft // 8))


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, durably. Raises `OSError`."""
    if not path.parent.exists():
        make_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a small file: it holds either all of `data` or its former content. Raises `OSError`.

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
