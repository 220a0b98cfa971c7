"""Cuts a byte stream into frames: a signed 32-bit big-endian length, then that many bytes."""

from typing import final

from korvet_fast.errors import CodecError
from korvet_reference.varint import Bytes

PREFIX = 4
EAGER = DIRECT = 64 * 1024


@final
class Frames:
    """Frames of at most `limit` bytes each; `limit` may be changed and holds from the next length prefix on."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = bytearray()
        self._size: int | None = None
        self._dead: CodecError | None = None
        self._rest = bytearray()

    @property
    def pending(self) -> int:
        """Bytes held now, length prefixes included: of the unfinished frame, and of frames beyond `most`."""
        return len(self._held)

    @property
    def announced(self) -> int:
        """Length of the unfinished frame as its prefix announced it; 0 while that is not known."""
        return self._size or 0

    def feed(self, data: Bytes, most: int = 1 << 63) -> list[bytearray]:
        """The frames that `data` completes, without their length prefix: the first `most` of them, if that is given.

        What comes behind these is kept, and cut when `feed` is called again; `data` may be empty then.
        Raises NEGATIVE_LENGTH, OVERSIZE (a length above the limit); the object is then dead and raises the same again.
        """
        if self._dead is not None:
            raise CodecError(self._dead.code, self._dead.message)
        self._held += data
        frames: list[bytearray] = []
        while len(frames) < most:
            if self._size is None:
                if len(self._held) < PREFIX:
                    return frames
                self._size = self._length()
            end = PREFIX + self._size
            if len(self._held) < end:
                return frames
            frames.append(self._held[PREFIX:end])
            del self._held[:end]
            self._size = None
        return frames

    def rest(self) -> memoryview | None:
        """Where to put the next bytes, 64 KiB or more of the unfinished frame; None where `feed` is to have them."""
        received = len(self._held) - PREFIX
        if self._size is None or received <= 0:
            return None
        missing = min(self._size, max(EAGER, 2 * received)) - received
        self._rest = bytearray(max(missing, 0))
        return memoryview(self._rest) if missing >= DIRECT else None

    def advance(self, count: int) -> bytearray | None:
        """So many bytes were put into what `rest` gave: the frame, if it is whole now.

        Raises BAD_VALUE for more than fit.
        """
        if count > len(self._rest):
            raise CodecError("BAD_VALUE", f"there is no room for {count} bytes")
        put, self._rest = self._rest[:count], bytearray()
        return next(iter(self.feed(put)), None)

    def _length(self) -> int:
        length = int.from_bytes(self._held[:PREFIX], "big", signed=True)
        if 0 <= length <= self.limit:
            return length
        self._dead = CodecError(
            "NEGATIVE_LENGTH" if length < 0 else "OVERSIZE", f"a frame of {length} bytes; the limit is {self.limit}"
        )
        raise self._dead
