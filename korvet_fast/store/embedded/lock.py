"""One process at a time for one directory."""

import fcntl
import os
from pathlib import Path

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.files import make_directory
from korvet_fast.store.embedded.unreadable import explain


class HolderGone(StoreError):
    """The process that took the lock is gone, or is in another container; workers that it had still have the lock."""


class Lock:
    """A lock on a directory. The system takes it back when the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / ".lock"
        self._fd = -1

    def exists(self) -> bool:
        """Whether the lock was ever taken."""
        return self._path.exists()

    def claim(self) -> None:
        """Make the directory if there is none, and lock it. Raises `StoreError`."""
        directory = self._path.parent
        try:
            if not self.exists():  # a new directory's entry is flushed before its first use
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
        """Lock the directory. Raises `StoreError` (or `HolderGone`) if others have the lock, and `OSError`."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise self._in_use(holder) from None
        except OSError:
            os.close(descriptor)
            raise
        self._fd = descriptor

    def _in_use(self, holder: str) -> StoreError:
        used = f"{self._path.parent} is in use by the process {holder}"
        if holder.isdecimal() and not os.path.exists(f"/proc/{holder}"):  # noqa: PTH110  (Path's may raise)
            return HolderGone(
                f"{used}, which is gone or in another container; its workers end within 30 s: kill those that do not, "
                f"`fuser -v {self._path}` names them"
            )
        return StoreError(f"{used}; stop it, or give this broker its own directory")

    def release(self) -> None:
        """Let another process have it. The file stays: removing it could break a lock just taken."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
