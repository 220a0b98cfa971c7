"""One process at a time for one directory."""

import fcntl
import os
from contextlib import ExitStack, suppress
from pathlib import Path

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.files import make_directory
from korvet_fast.store.embedded.unreadable import explain


class HolderUnknown(StoreError):
    """`.lock` names no process that can be seen from here; workers of an earlier one may still have the lock."""


class Lock:
    """A lock on a directory. The system takes it back when the process ends, however it ends.

    The directory itself is locked: who deletes files in it takes no lock away. `.lock` is locked too, for earlier
    versions and for other machines (file systems of a network lock files alone), and names the process.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / ".lock"
        self._descriptors = ExitStack()

    def claim(self) -> None:
        """Make the directory if there is none, and lock it. Raises `StoreError`."""
        directory = self._path.parent
        try:
            if not self._path.exists():  # a new directory's entry is flushed before its first use
                make_directory(directory)
            self.take()
        except OSError as error:
            if isinstance(error, PermissionError) and os.path.exists(directory):  # noqa: PTH110 (Path's may raise)
                raise StoreError(explain(error, directory)) from error
            a_file = isinstance(error, FileExistsError | NotADirectoryError)
            own = f"{error.strerror}; name a directory that this user may make, and write in"
            why = "there is a file; name a directory" if a_file else own
            raise StoreError(f"{directory} cannot be used: {why}") from error

    def take(self) -> None:
        """Lock the directory. Raises `StoreError` (or `HolderUnknown`) if others have the lock, and `OSError`."""
        with ExitStack() as opened:
            self._lock(opened, self._path.parent, os.O_RDONLY)  # first: only its holder makes `.lock`
            descriptor = self._lock(opened, self._path, os.O_RDWR | os.O_CREAT)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            self._descriptors = opened.pop_all()

    def check(self) -> None:
        """Raises as `take` would now, and changes nothing; a directory that is not there is free."""
        with ExitStack() as opened, suppress(FileNotFoundError):
            self._lock(opened, self._path.parent, os.O_RDONLY)
            self._lock(opened, self._path, os.O_RDWR)

    def _lock(self, opened: ExitStack, path: Path, flags: int) -> int:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o640)
        opened.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._in_use() from None
        return descriptor

    def _in_use(self) -> StoreError:
        holder = ""
        with suppress(FileNotFoundError):  # somebody has deleted it
            holder = self._path.read_text(errors="replace").strip()
        if not holder:
            return HolderUnknown(
                f"{self._path.parent} is in use by a process that .lock does not name; "
                f"stop it: `fuser -v {self._path.parent}` names it"
            )
        used = f"{self._path.parent} is in use by the process {holder}"
        if holder.isdecimal() and not os.path.exists(f"/proc/{holder}"):  # noqa: PTH110  (Path's may raise)
            return HolderUnknown(
                f"{used}, which is gone or in another container; its workers end within 30 s: kill those that do not, "
                f"`fuser -v {self._path.parent} {self._path}` names them"
            )
        return StoreError(f"{used}; stop it, or give this broker its own directory")

    def release(self) -> None:
        """Let another process have it. The file stays: removing it could break a lock just taken."""
        self._descriptors.close()
