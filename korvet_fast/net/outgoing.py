"""What is still to be sent on one connection, in order: bytes, and slices of files.

Bytes alone go through the transport. From a slice on, everything goes past it, through the pipe, until nothing is left.
If the socket takes no more, the transport gets a small piece of what comes next: it waits for the socket, and says when
the piece is gone.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from korvet_fast.core.types import Part, Slice
from korvet_fast.net.pipe import ROOM, Pipe, Unreadable

PIECE = 16 << 10  # bytes of a slice that wait in the transport while the socket is full


class Outgoing:
    """Use on the loop's thread. `moved` is called after something was sent without having been asked for.

    `failed` is called, once, if a slice cannot be read; the transport is aborted then, since the peer was told of more.
    """

    def __init__(
        self, transport: asyncio.Transport, pipe: Pipe, moved: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        transport.set_write_buffer_limits(0)  # it tells whenever something waits in it, and when nothing does any more
        self._transport = transport
        self._socket = transport.get_extra_info("socket").fileno()
        self._pipe = pipe
        self._moved = moved
        self._failed = failed
        self._parts: deque[Part] = deque()
        self._size = 0  # bytes of the parts
        self._reading = self._closing = False

    @property
    def pending(self) -> bool:
        """Whether anything waits here that the transport does not know of."""
        return bool(self._parts) and not self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Bytes that the peer's socket has not taken."""
        return self._size + self._transport.get_write_buffer_size()

    def send(self, parts: list[Part]) -> None:
        """Send these after everything else."""
        if not self._parts and Slice not in map(type, parts):
            self._transport.writelines(parts)  # type: ignore[arg-type]
            return
        self._parts += parts
        self._size += sum(map(len, parts))
        self.go_on(look=False)

    def go_on(self, *, look: bool = True) -> None:
        """Send what the socket takes now. `look` for slices that may have left the page cache while they waited."""
        transport = self._transport
        while self._parts and not (self._reading or transport.get_write_buffer_size() or transport.is_closing()):
            try:
                taken, sent = self._pipe.send(self._socket, self._parts, look=look)
            except Unreadable as error:
                self._failed(str(error))
                return self.abort()
            except OSError:  # the peer is gone
                return self.abort()
            self._drop(sent)
            look = True
            if sent < taken:
                self._wait()
            elif not taken and self._parts:
                self._read()
        if self._closing and not self._parts:
            transport.close()
        return None

    def close(self) -> None:
        """Close the transport once everything is sent."""
        self._closing = True
        if not self._parts:
            self._transport.close()

    def abort(self) -> None:
        """Close it now."""
        self._parts.clear()
        self._size = 0
        self._transport.abort()

    def _drop(self, size: int) -> None:
        """So many bytes of the parts are sent."""
        self._size -= size
        parts = self._parts
        while parts and size >= len(parts[0]):
            size -= len(parts.popleft())
        if size:
            part = parts[0]
            parts[0] = part.behind(size) if isinstance(part, Slice) else memoryview(part)[size:]

    def _wait(self) -> None:
        """The socket is full: have the transport wait for it."""
        part = self._parts[0]
        if isinstance(part, Slice):
            try:
                data = part.file.read(
                    part.position, min(part.length, PIECE)
                )  # it is in memory: it just was in the pipe
            except OSError as error:
                self._failed(str(error))
                return self.abort()
            self._transport.write(data)
            return self._drop(len(data))
        self._transport.write(part)
        return self._drop(len(part))

    def _read(self) -> None:
        """What comes next has left the page cache while it waited: the disk must not stop the loop."""
        part = self._parts[0]
        assert isinstance(part, Slice)  # bytes always fit into an empty pipe
        self._reading = True
        loop = asyncio.get_running_loop()
        size = min(part.length, ROOM)
        loop.run_in_executor(None, part.file.read, part.position, size).add_done_callback(self._take)

    def _take(self, reading: "asyncio.Future[bytes]") -> None:
        self._reading = False
        error = reading.exception()
        if self._transport.is_closing() or not self._parts:
            return None
        if error is not None:
            self._failed(str(error))
            return self.abort()
        data = reading.result()
        part = self._parts[0]
        assert isinstance(part, Slice)
        if part.length > len(data):
            self._parts[0] = part.behind(len(data))
        else:
            self._parts.popleft()
        self._parts.appendleft(data)
        self.go_on()
        return self._moved()
