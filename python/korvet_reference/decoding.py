"""From the bytes of a message to values. Rules: kafka.apache.org/protocol, and KIP-482 for flexible versions."""

from collections.abc import Iterator
from typing import Any

from korvet_fast.errors import CodecError
from korvet_reference.reader import Reader
from korvet_reference.table import INTEGERS, LONGEST_TEXT, TAGGED, UNTAGGED, Row


class Decoder:
    """One walk over one message. `left`: array elements and unknown tagged fields still allowed."""

    def __init__(self, reader: Reader, version: int, flexible: bool, left: int) -> None:
        self.reader = reader
        self.version = version
        self.flexible = flexible
        self.left = left

    def message(self, rows: tuple[Row, ...]) -> dict[str, Any]:
        """All of the input as one struct."""
        values = self.struct(rows)
        self._end()
        return values

    def struct(self, rows: tuple[Row, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        here = [row for row in rows if row.lives_in(self.version, self.flexible)]
        for row in here:
            if row.tag == UNTAGGED:
                values[row.name] = self.field(row)
        if self.flexible:
            self._tagged({row.tag: row for row in here if row.tag != UNTAGGED}, values)
        for row in rows:
            if row.name not in values:
                values[row.name] = row.initial()
        return values

    def field(self, row: Row) -> Any:
        nullable = self.version >= row.nullable
        value: Any
        if row.array:
            value = self._array(row)
        elif row.kind == "{}" and nullable:
            value = None if self.reader.integer(1) < 0 else self.struct(row.fields)
        else:
            value = self._single(row)
        if value is None and not nullable:
            raise CodecError("UNEXPECTED_NULL", f"null is not legal for {row.name}")
        return value

    def _single(self, row: Row) -> Any:
        """A value that is no array, or an element of one; None for null."""
        reader = self.reader
        if row.kind in INTEGERS:
            return reader.integer(*INTEGERS[row.kind])
        match row.kind:
            case "bool":
                return reader.integer(1) != 0
            case "float64":
                return reader.float64()
            case "uuid":
                return bytes(reader.take(16))
            case "string" | "legacy_string":
                size = self._length(self.flexible and row.kind == "string", 2)
                if size is not None and size > LONGEST_TEXT:
                    raise CodecError("OVERSIZE", f"a string of {size} bytes")
                return None if size is None else _text(reader.take(size))
            case "bytes":
                size = self._length(self.flexible, 4)
                return None if size is None else bytes(reader.take(size))
            case "records":
                size = self._length(self.flexible, 4)
                return None if size is None else reader.take(size)
            case "tags":
                found = {}
                for tag, body in self._section():
                    found[tag] = bytes(body)
                    self._spend(1)
                return found
            case _:
                return self.struct(row.fields)

    def _array(self, row: Row) -> list[Any] | None:
        count = self._length(self.flexible, 4)
        if count is None:
            return None
        if count > self.reader.remaining // row.smallest(self.version, self.flexible):
            raise CodecError("COUNT_EXCEEDS_INPUT", f"{count} elements of {row.name} do not fit into what is left")
        self._spend(count)
        elements = []
        for _ in range(count):
            element = self._single(row)
            if element is None:
                raise CodecError("UNEXPECTED_NULL", f"null is not legal in {row.name}")
            elements.append(element)
        return elements

    def _length(self, compact: bool, size: int) -> int | None:
        """A length or count, None for null: an unsigned varint of one more, or a signed integer of `size` bytes."""
        length = self.reader.unsigned() - 1 if compact else self.reader.integer(size)
        if length < -1:
            raise CodecError("NEGATIVE_LENGTH", f"a length of {length}")
        return None if length == -1 else length

    def _tagged(self, known: dict[int, Row], values: dict[str, Any]) -> None:
        unknown: dict[int, bytes] = {}
        for tag, body in self._section():
            if tag not in known:
                unknown[tag] = bytes(body)
                self._spend(1)
                continue
            outer, self.reader = self.reader, Reader(body)
            values[known[tag].name] = self.field(known[tag])
            self._end()
            self.reader = outer
        if unknown:
            values[TAGGED] = unknown

    def _section(self) -> Iterator[tuple[int, memoryview]]:
        """The tags of a section of tagged fields, which must rise, with their bytes."""
        count = self.reader.unsigned()
        if count > self.reader.remaining // 2:
            raise CodecError("COUNT_EXCEEDS_INPUT", f"{count} tagged fields do not fit into what is left")
        last = -1
        for _ in range(count):
            tag = self.reader.unsigned()
            if tag <= last:
                raise CodecError("DUPLICATE_TAG", f"tag {tag} after tag {last}")
            last = tag
            yield tag, self.reader.take(self.reader.unsigned())

    def _spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise CodecError("TOO_MANY_ELEMENTS", "the message has more elements than the limit")

    def _end(self) -> None:
        if self.reader.remaining:
            raise CodecError("TRAILING_BYTES", f"{self.reader.remaining} bytes are left over")


def _text(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise CodecError("BAD_UTF8", str(error)) from error
