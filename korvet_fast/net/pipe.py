"""A pipe through which parts of replies go to a socket: bytes, and slices of files as references to their pages.

The same could be had from `sendfile`, but that moves 64 KiB at a time and gives the processor away after each: on busy
cores the peer then is woken, empties its socket and sleeps again, a dozen times for a megabyte.
"""

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress

from korvet_fast.core.types import Part, Slice

ROOM = 1 << 20  # bytes of a slice that go through at a time; without a special right a pipe gets no more


class Unreadable(Exception):
    """A slice cannot be read: what was promised of it cannot be sent."""


class Pipe:
    """Shared by the connections of a loop: it is empty before and after each call. Three descriptors."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._open = [self._out, self._in, self._nowhere]
        for size in (2 * ROOM, ROOM):  # the first has room for what stands around a slice too, but needs that right
            with suppress(PermissionError):  # all pipes of a user share what may be taken: then it stays a small one
                fcntl.fcntl(self._in, fcntl.F_SETPIPE_SZ, size)
                break

    def close(self) -> None:
        """Give the descriptors back."""
        while self._open:
            os.close(self._open.pop())

    def send(self, socket: int, parts: Iterable[Part], *, look: bool) -> tuple[int, int]:
        """Send the parts in order, as far as pipe and socket have room; `look`: up to a slice that is not in memory.

        Returns how many bytes were put into the pipe, and how many of them the socket took. Raises `Unreadable`, and
        `OSError` if the socket is broken.
        """
        taken = sent = 0
        flags = os.SPLICE_F_NONBLOCK
        try:
            for part in parts:
                size = self._put(part, look)
                taken += size
                if size < len(part):
                    flags |= os.SPLICE_F_MORE  # the rest may share a segment with what is sent now
                    break
            if taken:
                sent = os.splice(self._out, socket, taken, flags=flags)
        except BlockingIOError:
            pass  # it took nothing
        finally:
            left = taken - sent
            while left:
                left -= os.splice(self._out, self._nowhere, left)
        return taken, sent

    def _put(self, part: Part, look: bool) -> int:
        """How much of the part is in the pipe now."""
        try:
            if not isinstance(part, Slice):
                return os.write(self._in, part)
            if look and not part.file.caches(part.position, min(part.length, ROOM)):
                return 0
            size = os.splice(part.file.fd, self._in, part.length, offset_src=part.position)
        except BlockingIOError:  # it is full
            return 0
        except OSError as error:
            raise Unreadable(error.strerror) from error
        if not size:
            raise Unreadable(f"{os.strerror(errno.EIO)}: the file ends before byte {part.position + part.length}")
        return size
