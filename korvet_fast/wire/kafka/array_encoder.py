"""Encoding an answer piece by piece: a long one neither blocks the loop nor lies in memory as values."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from korvet_fast._native import Schema
from korvet_fast.core.fair_queue import Pace
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.shapes.message import Shape

_PIECE: Final = 1 << 20  # bytes; a longer buffer is copied when it grows
_OFTEN: Final = 8  # pieces between two looks at the clock


class ArrayEncoder:
    """A struct with one array of structs, `array`, that may be long: the fields before, each row, the fields after.

    The three together are the bytes that `Schema(*shape).encode` gives. Tagged fields must stand behind the array.
    """

    def __init__(self, shape: Shape, array: str) -> None:
        names = [field.name for field in shape.fields]
        at = names.index(array)
        self._names = frozenset(names[:at]), frozenset(names[at + 1 :])
        rest = shape.lowest, shape.highest, shape.flexible
        self._flexible = shape.flexible
        self._before = Schema(shape.name, shape.fields[:at], *rest)
        self._after = Schema(shape.name, shape.fields[at + 1 :], *rest)
        self.element: Final = Shape(f"{shape.name}.{array}", shape.fields[at].fields, *rest)
        self._row = Schema(*self.element)

    def head(self, values: Mapping[str, Any], count: int, version: int) -> bytes:
        """All fields before the array, of those in `values`, and how many rows it has."""
        before = self._before.encode({name: values[name] for name in values.keys() & self._names[0]}, version)
        if version < self._flexible:
            return before + count.to_bytes(4, "big")
        return before[:-1] + _write_varint(count + 1)  # the fields end with a section of tags only behind the array

    def row(self, values: Mapping[str, Any] | tuple[Any, ...], version: int) -> bytes:
        return self._row.encode(values, version)  # type: ignore[arg-type]  # a struct may be a tuple

    def tail(self, values: Mapping[str, Any], version: int) -> bytes:
        """All fields after the array, of those in `values`."""
        return self._after.encode({name: values[name] for name in values.keys() & self._names[1]}, version)

    async def reply(
        self, values: Mapping[str, Any], count: int, rows: Iterable[Mapping[str, Any]], version: int, pace: Pace
    ) -> Reply:
        """A whole answer of `count` rows, each taken when those before it are encoded. `values`: the other fields."""
        out = LongReply(pace)
        await out.add(self.head(values, count, version))
        for row in rows:
            await out.add(self.row(row, version))
        await out.add(self.tail(values, version))
        return out.finish()


class LongReply:
    """Collects the pieces of one answer. Between two of them others may have their turn."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._last = bytearray(4)  # the length goes here
        self._parts = [self._last]
        self._count = 0

    async def add(self, piece: bytes) -> None:
        if len(self._last) >= _PIECE:
            self._last = bytearray()
            self._parts.append(self._last)
        self._last += piece
        self._count += 1
        if self._count % _OFTEN == 0 and self._pace.due():
            await self._pace.turn()

    def finish(self, head: bytes = b"") -> Reply:
        """The whole answer, behind its length. `head`: the beginning, if it was not known before."""
        self._parts[0][4:4] = head
        size = sum(map(len, self._parts)) - 4
        self._parts[0][:4] = size.to_bytes(4, "big")
        return list(self._parts)


def _write_varint(number: int) -> bytes:
    """Unsigned, seven bits at a time (KIP-482)."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
