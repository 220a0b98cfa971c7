"""The rows a message shape is described by, and the rules that a table of them must keep."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from korvet_fast.errors import CodecError

NEVER = 32767  # a version no message reaches
TAGGED = "_tagged"  # the key under which unknown tagged fields are kept
DEEPEST = 16  # structs inside structs; only a table can nest, input never does
UNTAGGED = -1
LONGEST_TEXT = (1 << 15) - 1  # bytes of a string, compact ones too

INTEGERS = {
    "int8": (1, True),
    "int16": (2, True),
    "uint16": (2, False),
    "int32": (4, True),
    "uint32": (4, False),
    "int64": (8, True),
}
ZEROS: dict[str, Any] = {"bool": False, "float64": 0.0, "uuid": bytes(16), "string": "", "bytes": b"", "records": b""}
KINDS = {*INTEGERS, *ZEROS}
ONLY_SINGLE = {"legacy_string": "", "tags": {}, "{}": {}}
MAY_BE_NULL = {"string", "legacy_string", "bytes", "records", "{}"}


@dataclass(frozen=True, slots=True)
class Row:
    """A field and the versions it lives in; shapes/field.py of the product says what each column means."""

    name: str
    kind: str  # of an element, if it is an array
    array: bool
    since: int
    until: int
    nullable: int
    default: Any  # None, a value, or `...` for the kind's zero
    tag: int
    fields: tuple["Row", ...]

    def lives_in(self, version: int, flexible: bool) -> bool:
        """Whether a message of this version has room for it."""
        return self.since <= version <= self.until and (self.tag == UNTAGGED or flexible)

    def smallest(self, version: int, flexible: bool) -> int:
        """The fewest bytes that its value, or one of its elements, takes."""
        if self.kind in INTEGERS:
            return INTEGERS[self.kind][0]
        match self.kind:
            case "{}":
                here = [row for row in self.fields if row.lives_in(version, flexible) and row.tag == UNTAGGED]
                return flexible + sum(row.smallest_whole(version, flexible) for row in here)
            case "string" | "legacy_string":
                return 1 if flexible and self.kind == "string" else 2
            case "bytes" | "records":
                return 1 if flexible else 4
            case kind:
                return {"bool": 1, "tags": 1, "float64": 8, "uuid": 16}[kind]

    def smallest_whole(self, version: int, flexible: bool) -> int:
        """As `smallest`, but of the field as a whole: an array's length, a struct's null mark."""
        if self.array:
            return 1 if flexible else 4
        if self.kind == "{}" and version >= self.nullable:
            return 1
        return self.smallest(version, flexible)

    def initial(self) -> Any:
        """The field's value in a message that does not have the field."""
        if self.default is not ...:
            return self.default
        if self.array:
            return []
        if self.kind == "records":
            return memoryview(b"")
        return self.zero()

    def zero(self) -> Any:
        """Nothing, as its kind has it: 0, "", no elements, a struct of defaults."""
        if self.array:
            return []
        if self.kind == "{}":
            return {row.name: row.initial() for row in self.fields}
        return {} if self.kind == "tags" else {**ZEROS, "legacy_string": ""}.get(self.kind, 0)


def read_table(table: Iterable[tuple[Any, ...]], depth: int = 0) -> tuple[Row, ...]:
    """The rows of a table of tuples. Raises BAD_SCHEMA."""
    rows: list[Row] = []
    for name, word, since, until, nullable, default, tag, fields in table:
        array = word.startswith("[]")
        kind = word.removeprefix("[]") or "{}"
        if kind not in KINDS and (word == "[]{}" or kind not in ONLY_SINGLE or (array and kind != "{}")):
            raise CodecError("BAD_SCHEMA", f".{name}: no such kind: {word!r}")
        _demand(depth <= DEEPEST, name, "structs are nested too deeply")
        inner = read_table(fields, depth + 1)
        row = Row(name, kind, array, since, until, nullable, _plain_default(name, default), tag, inner)
        _demand(name != TAGGED and all(name != other.name for other in rows), name, "the name is taken")
        _demand(0 <= since <= until, name, "no version has it")
        _demand(UNTAGGED <= tag < 1 << 32, name, "no such tag")
        _demand(not any(_collide(row, other) for other in rows), name, "the tag is taken")
        _demand((kind == "{}") == bool(inner), name, "a struct needs fields, and nothing else may have them")
        _demand(nullable >= NEVER or array or kind in MAY_BE_NULL, name, "this kind cannot be null")
        _demand(kind != "tags" or tag == UNTAGGED, name, "a section of tagged fields cannot be tagged itself")
        _demand(_default_fits(row), name, "the default does not fit the kind")
        rows.append(row)
    return tuple(rows)


def check_elements(rows: tuple[Row, ...], version: int, flexible: bool) -> None:
    """Raises BAD_SCHEMA for arrays of nothing: they could announce any number of elements and be believed."""
    for row in rows:
        if row.array and row.since <= version <= row.until and row.smallest(version, flexible) == 0:
            raise CodecError("BAD_SCHEMA", f".{row.name}: its elements take no bytes in version {version}")
        check_elements(row.fields, version, flexible)


def _demand(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise CodecError("BAD_SCHEMA", f".{name}: {what}")


def _collide(one: Row, other: Row) -> bool:
    return one.tag != UNTAGGED and one.tag == other.tag and one.since <= other.until and other.since <= one.until


def _plain_default(name: str, default: object) -> object:
    """An empty list, tuple or dict is another way to write the zero."""
    if default is None or isinstance(default, EllipsisType | bool | int | float | str | bytes):
        return default
    if isinstance(default, list | tuple | Mapping) and not default:
        return ...
    raise CodecError("BAD_SCHEMA", f".{name}: this default cannot be had")


def _default_fits(row: Row) -> bool:
    default = row.default
    if default is ...:
        return True
    if default is None:
        # An absent tagged field is read as null, which must be legal to write back.
        return row.nullable <= (NEVER - 1 if row.tag == UNTAGGED else row.since)
    if row.array:
        return False
    if isinstance(default, bool):
        return row.kind == "bool"
    if isinstance(default, int):
        return row.kind in INTEGERS and fits(default, row.kind)
    if isinstance(default, float):
        return row.kind == "float64"
    if isinstance(default, str):
        return row.kind in ("string", "legacy_string") and len(default.encode()) <= 0x7FFF
    return row.kind == "bytes" or (row.kind == "uuid" and len(default) == 16)


def fits(number: int, kind: str) -> bool:
    """Whether an integer kind can hold `number`."""
    size, signed = INTEGERS[kind]
    low = -(1 << (8 * size - 1)) if signed else 0
    return low <= number < low + (1 << (8 * size))
