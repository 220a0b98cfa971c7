"""A fixed piece of work that this machine's speed is measured with: what a request costs is told in it."""

from struct import Struct
from typing import Final

# Microseconds of `work` at best on the machine whose budgets these are, two virtual processors of a Xeon.
NOMINAL: Final = 100.0

_HEAD = Struct(">hhi")
_ROUNDS = 176
_DATA = bytes(range(256)) * 8


class _Part:
    __slots__ = ("name", "row", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.row: dict[str, int] = {}


def work() -> int:
    """The reference loop, of usual Python: attributes, small objects, dicts, lists, numbers out of bytes, a copy.

    Never change it: figures of different days are compared through it.
    """
    total = 0
    parts = []
    for number in range(_ROUNDS):
        part = _Part("orders", number)
        key, version, correlation = _HEAD.unpack_from(_DATA, number)
        part.row = {"index": number, "error_code": 0, "base_offset": key + version}
        parts.append(part)
        total += correlation & 0xFF
    for part in parts:
        total += part.row["base_offset"] + part.size
    return total + len(bytearray(_DATA))
