"""Cuts the bytes of a connection into HTTP requests: heads, which end with an empty line (RFC 9112, 2.1), and forms.

Only a form that a browser posts has a body here. h11 judges afterwards whether the request ends where it was cut.
"""

import re
from typing import Final

from korvet_fast.types import Buffer

LIMIT: Final = 16 * 1024  # bytes of a head
FORM_LIMIT: Final = 16 * 1024  # bytes of a form
FORM: Final = "application/x-www-form-urlencoded"
_END: Final = re.compile(rb"\n\r?\n")  # as h11 finds the end of a head
_LONGEST_END: Final = 3  # bytes of it
_OF_FORM: Final = re.compile(rb"\ncontent-type:[ \t]*" + FORM.encode() + rb"[ \t]*[;\r\n]", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r?\n", re.IGNORECASE)


class Requests:
    """See `wire.dialect.Frames`. A head that is too long is given in part, without its end; nothing comes after it.

    A body that is no form, or too long for one, is not waited for: its head is refused without it.
    """

    announced = 0

    def __init__(self) -> None:
        self._data = bytearray()
        self._searched = 0  # bytes of `_data` in which no head ends
        self._size = 0  # bytes of the first request in `_data`; 0: its head has not ended yet
        self._broken = False

    @property
    def pending(self) -> int:
        return len(self._data)

    def feed(self, data: Buffer, most: int, /) -> list[bytearray]:
        """At most `most` requests."""
        requests: list[bytearray] = []
        if self._broken:
            return requests
        kept = self._data
        kept += data
        while len(requests) < most:
            if not self._size:
                end = _END.search(kept, max(0, self._searched - _LONGEST_END))
                if end is None or end.end() > LIMIT:
                    self._searched = len(kept)
                    if end is not None or len(kept) > LIMIT:
                        self._broken = True
                        requests.append(kept[:LIMIT])
                        kept.clear()
                    break
                self._size = end.end() + _read_length(kept[: end.end()])
            if len(kept) < self._size:
                break
            requests.append(kept[: self._size])
            del kept[: self._size]
            self._searched = self._size = 0
        return requests

    def rest(self) -> None:
        """There is no place for a head but the connection's window."""

    def advance(self, count: int, /) -> bytearray | None:
        """Never called, as `rest` has no place."""
        raise NotImplementedError


def _read_length(head: bytearray) -> int:
    """Bytes of the form behind a head; 0 if there is none."""
    if not head.startswith(b"POST ") or _OF_FORM.search(head) is None:
        return 0
    length = _LENGTH.search(head)
    size = 0 if length is None else int(length[1])
    return size if size <= FORM_LIMIT else 0
