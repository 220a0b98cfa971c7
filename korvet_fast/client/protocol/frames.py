"""Frames out of a byte stream: a signed 32-bit big-endian length, then so many bytes."""

from korvet_fast._native import reserve
from korvet_fast.errors import CodecError

LENGTH_SIZE = 4  # bytes
WINDOW = 16384


class FrameReader:
    """Gives the buffer for the next bytes of a stream, and cuts the bytes into frames.

    The kernel writes a large frame into its own buffer, but for the part that came with its length. The memory of a
    frame follows the bytes requested and the bytes received, never the announced length alone.
    """

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of the largest legal frame."""
        self.limit = limit
        self._window = bytearray(WINDOW)
        self._start = self._end = 0  # the bytes of the window that belong to no frame yet
        self._frame: bytearray | None = None
        self._length = self._filled = 0  # bytes of the frame: announced, and come

    @property
    def prefix(self) -> bytes:
        """The bytes of the last length that came, legal or not."""
        return self._length.to_bytes(LENGTH_SIZE, "big", signed=True)

    def get_buffer(self) -> memoryview:
        """The buffer for the next bytes. Call `take` until it returns None first."""
        if self._frame is None:
            if self._start:  # at most a part of a length is left
                left = self._window[self._start : self._end]
                self._window[: len(left)] = left
                self._start, self._end = 0, len(left)
            return memoryview(self._window)[self._end :]
        assert self._filled < self._length, "a whole frame is taken first"
        if self._filled == len(self._frame):
            grown = reserve(min(2 * self._filled, self._length))
            grown[: self._filled] = self._frame
            self._frame = grown
        return memoryview(self._frame)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        """Take `count` bytes that were written into the buffer."""
        if self._frame is None:
            self._end += count
        else:
            self._filled += count

    def take(self, room: int) -> bytearray | None:
        """The next frame without its length; None while a part is missing. `CodecError` for an illegal length.

        `room`: bytes of memory, 1 at least, for the frame before its bytes come; later it has at most twice what came.
        """
        if self._frame is None:
            self._begin(room)
        if self._frame is None or self._filled < self._length:
            return None
        frame, self._frame = self._frame, None
        return frame

    def _begin(self, room: int) -> None:
        begin = self._start + LENGTH_SIZE
        if begin > self._end:
            return
        self._length = int.from_bytes(self._window[self._start : begin], "big", signed=True)
        if not LENGTH_SIZE <= self._length <= self.limit:
            raise CodecError("BAD_LENGTH", f"an answer of {self._length} bytes")
        self._filled = min(self._end - begin, self._length)
        self._frame = reserve(min(self._length, max(room, self._filled)))
        self._start = begin + self._filled
        memoryview(self._frame)[: self._filled] = memoryview(self._window)[begin : self._start]
