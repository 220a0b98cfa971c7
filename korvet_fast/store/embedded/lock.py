"""One process at a time for one directory."""

import fcntl
import os
from pathlib import Path

from korvet_fast.errors import StoreError


class Lock:
    """A lock on a directory. The system takes it back when the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / ".lock"
        self._fd = -1

    def exists(self) -> bool:
        """Whether the lock was ever taken."""
        return self._path.exists()

    def take(self) -> None:
        """Lock the directory. Raises `StoreError` if another process has the lock, and `OSError`."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreError(
                f"{self._path.parent} is in use by the process {holder}; stop it, or give this broker its own directory"
            ) from None
        except OSError:
            os.close(descriptor)
            raise
        self._fd = descriptor

    def release(self) -> None:
        """Let another process have it. The file stays: removing it could break a lock just taken."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
