"""Locks of single bytes of one file, by the kernel: free as soon as the process that has one is gone, however it ended.

A lock belongs to the open file (open file description locks, fcntl(2)), so two stores of one process exclude each other
too. Behind the bytes that are locked stands who has each: a token that no other process has.
"""

import errno
import fcntl
import os
import struct
from pathlib import Path

_FLOCK = struct.Struct("hhqqi4x")  # struct flock where addresses have 64 bits: type, whence, start, length, process
_TOKEN = 16  # bytes
_TOKENS_AT = 4096


class ByteLocks:
    """The locks of one file, which is made if there is none. Raises `OSError`.

    A path as `/proc/self/fd/5` opens the file of that descriptor once more, with locks of its own.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Give back all that were taken here."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def take(self, byte: int, token: str = "") -> bool:
        """Lock a byte, and say who has it; False if somebody else has it. `token`: 16 characters, or none."""
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        if token:
            os.pwrite(self._fd, token.encode().ljust(_TOKEN)[:_TOKEN], _TOKENS_AT + _TOKEN * byte)
        return True

    def release(self, byte: int) -> None:
        """Let somebody else have it."""
        if self._fd >= 0:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, byte, 1, 0))

    def has(self, byte: int, token: str) -> bool:
        """Whether the process with this token has the byte, or may have it.

        Who has just taken a byte may not have written its token yet: then the answer is still that of before, and right
        a moment later. False is certain: that process is gone. After `close` nothing is certain.
        """
        if self._fd < 0:
            return True
        answer = fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))
        if _FLOCK.unpack(answer)[0] == fcntl.F_UNLCK:
            return False
        return os.pread(self._fd, _TOKEN, _TOKENS_AT + _TOKEN * byte).decode(errors="replace").strip() == token
