"""Cuts the bytes of a connection into the heads of HTTP requests, which end with an empty line (RFC 9112, 2.1)."""

import re
from typing import Final

from korvet_fast.types import Buffer

LIMIT: Final = 16 * 1024  # bytes of a head
_END: Final = re.compile(rb"\n\r?\n")  # as h11 finds the end of a head
_LONGEST_END: Final = 3  # bytes of it


class RequestHeads:
    """See `wire.dialect.Frames`. A head that is too long is given in part, without its end; nothing comes after it."""

    announced = 0

    def __init__(self) -> None:
        self._data = bytearray()
        self._searched = 0  # bytes of `_data` in which no head ends
        self._broken = False

    @property
    def pending(self) -> int:
        return len(self._data)

    def feed(self, data: Buffer, most: int, /) -> list[bytearray]:
        """At most `most` heads."""
        heads: list[bytearray] = []
        if self._broken:
            return heads
        kept = self._data
        kept += data
        while len(heads) < most:
            end = _END.search(kept, max(0, self._searched - _LONGEST_END))
            if end is None or end.end() > LIMIT:
                self._searched = len(kept)
                if end is not None or len(kept) > LIMIT:
                    self._broken = True
                    heads.append(kept[:LIMIT])
                    kept.clear()
                break
            heads.append(kept[: end.end()])
            del kept[: end.end()]
            self._searched = 0
        return heads

    def rest(self) -> None:
        """There is no place for a head but the connection's window."""

    def advance(self, count: int, /) -> bytearray | None:
        """Never called, as `rest` has no place."""
        raise NotImplementedError
