"""From values to the bytes of a message. Rules: kafka.apache.org/protocol, and KIP-482 for flexible versions."""

import operator
import struct
from collections.abc import Mapping
from typing import Any, TypeGuard

from korvet_fast.errors import CodecError
from korvet_reference.table import INTEGERS, LONGEST_TEXT, TAGGED, UNTAGGED, Row, fits
from korvet_reference.varint import Bytes, write_unsigned

LONGEST = (1 << 31) - 2  # a compact length is one more, and must fit 31 bits


class Encoder:
    """One message being written. Records of `lend_from` bytes and more become parts of their own, not copied."""

    def __init__(self, version: int, flexible: bool, lend_from: int) -> None:
        self.version = version
        self.flexible = flexible
        self.lend_from = lend_from
        self.parts: list[Bytes] = []

    def write(self, data: bytes) -> None:
        """Append bytes to the last part that is ours."""
        if self.parts and isinstance(self.parts[-1], _Own):
            self.parts[-1] += data
        else:
            self.parts.append(_Own(data))

    def struct(self, rows: tuple[Row, ...], values: object, path: str) -> None:
        if isinstance(values, tuple):  # its first fields, in the order of the table
            if len(values) > len(rows):
                raise _bad(f"{path}.{len(rows)}", "there is no such field")
            values = {row.name: value for row, value in zip(rows, values, strict=False)}
        if not isinstance(values, Mapping):
            raise _bad(path, "a struct is needed")
        here = [row for row in rows if row.lives_in(self.version, self.flexible)]
        for row in here:
            if row.tag == UNTAGGED:
                self.field(row, values.get(row.name, self._initial(row)), f"{path}.{row.name}")
        if self.flexible:
            self._tagged([row for row in here if row.tag != UNTAGGED], values, path)
        for key in values:
            # Fields of other versions are left out without a word; those of no version are a mistake.
            if key != TAGGED and all(key != row.name for row in rows):
                raise _bad(f"{path}.{key}", "there is no such field")

    def field(self, row: Row, value: object, path: str) -> None:
        if value is None:
            if self.version < row.nullable:
                raise _bad(path, "null is not legal here")
            self._null(row)
        elif row.array:
            if not isinstance(value, list | tuple):
                raise _bad(path, "a list is needed")
            self._length(len(value), self.flexible, 4, path)
            for at, element in enumerate(value):
                self._single(row, element, f"{path}[{at}]")
        else:
            if row.kind == "{}" and self.version >= row.nullable:
                self.write(b"\1")
            self._single(row, value, path)

    def _initial(self, row: Row) -> Any:
        """The value written for a missing one."""
        default = row.initial()
        return row.zero() if default is None and self.version < row.nullable else default

    def _single(self, row: Row, value: Any, path: str) -> None:
        if row.kind in INTEGERS:
            size, signed = INTEGERS[row.kind]
            self.write(_integer(value, row.kind, path).to_bytes(size, "big", signed=signed))
            return
        match row.kind:
            case "bool":
                if not isinstance(value, bool):
                    raise _bad(path, "a bool is needed")
                self.write(bytes([value]))
            case "float64":
                self.write(_float64(value, path))
            case "uuid":
                if not is_buffer(value) or memoryview(value).nbytes != 16:
                    raise _bad(path, "16 bytes are needed")
                self.write(bytes(value))
            case "string" | "legacy_string":
                text = _text(value, path)
                self._length(len(text), self.flexible and row.kind == "string", 2, path)
                self.write(text)
            case "bytes":
                if not is_buffer(value):
                    raise _bad(path, "bytes are needed")
                self._length(memoryview(value).nbytes, self.flexible, 4, path)
                self.write(bytes(value))
            case "records":
                self._records(value, path)
            case "tags":
                self._section(_tags(value, path), path)
            case _:
                self.struct(row.fields, value, path)

    def _records(self, value: object, path: str) -> None:
        """One buffer, or a list of them to be written one after another under one length."""
        buffers: list[Bytes] = []
        for buffer in value if isinstance(value, list) else [value]:
            if not is_buffer(buffer):
                raise _bad(path, "a buffer or a list of buffers is needed")
            buffers.append(buffer)
        self._length(sum(memoryview(buffer).nbytes for buffer in buffers), self.flexible, 4, path)
        for buffer in buffers:
            if memoryview(buffer).nbytes < self.lend_from:
                self.write(bytes(buffer))
            else:
                self.parts.append(buffer)

    def _tagged(self, rows: list[Row], values: Mapping[str, Any], path: str) -> None:
        """The section that ends a flexible struct. A field that is as if it had not been given is left out."""
        found = _tags(values.get(TAGGED, {}), f"{path}.{TAGGED}")
        for row in rows:
            if row.tag in found:
                raise _bad(path, f"tag {row.tag} has a field of its own")
        for row in rows:
            if row.name in values:
                body = self._body(row, values[row.name], f"{path}.{row.name}")
                if body != self._body(row, self._initial(row), path):
                    found[row.tag] = body
        self._section(found, path)

    def _body(self, row: Row, value: object, path: str) -> bytes:
        inner = Encoder(self.version, self.flexible, LONGEST)
        inner.field(row, value, path)
        return b"".join(inner.parts)

    def _section(self, tags: dict[int, bytes], path: str) -> None:
        self.write(write_unsigned(len(tags)))
        for tag, body in sorted(tags.items()):
            self.write(write_unsigned(tag) + write_unsigned(len(body)) + body)

    def _length(self, length: int, compact: bool, size: int, path: str) -> None:
        if length > (LONGEST_TEXT if size == 2 else LONGEST):
            raise _bad(path, f"{length} is too long")
        self.write(write_unsigned(length + 1) if compact else length.to_bytes(size, "big"))

    def _null(self, row: Row) -> None:
        if row.kind == "{}" and not row.array:
            self.write(b"\xff")
        elif self.flexible and (row.array or row.kind != "legacy_string"):
            self.write(b"\0")
        else:
            self.write(b"\xff" * (2 if row.kind in ("string", "legacy_string") and not row.array else 4))


class _Own(bytearray):
    """A part that was written here, as opposed to one that was handed on."""


def is_buffer(value: object) -> TypeGuard[Bytes]:
    """Whether the value is C-contiguous bytes of any kind."""
    try:
        return memoryview(value).c_contiguous  # type: ignore[arg-type]
    except TypeError:
        return False


def _bad(path: str, what: str) -> CodecError:
    return CodecError("BAD_VALUE", f"{path}: {what}")


def _integer(value: Any, kind: str, path: str) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise _bad(path, "an integer is needed") from error
    if not fits(number, kind):
        raise _bad(path, f"{number} does not fit {kind}")
    return number


def _float64(value: Any, path: str) -> bytes:
    try:
        return struct.pack(">d", value)
    except (struct.error, OverflowError) as error:
        raise _bad(path, "a float is needed") from error


def _text(value: object, path: str) -> bytes:
    if not isinstance(value, str):
        raise _bad(path, "a string is needed")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise _bad(path, "half a character") from error


def _tags(value: object, path: str) -> dict[int, bytes]:
    if not isinstance(value, dict):
        raise _bad(path, "a dict of tags is needed")
    for tag, body in value.items():
        _integer(tag, "uint32", path)
        if not is_buffer(body):
            raise _bad(path, "a tag's body is bytes")
    return {tag: bytes(body) for tag, body in value.items()}
