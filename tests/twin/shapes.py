"""Message shapes and values for them: those of the product, and tables made up at random."""

from typing import Any

from hypothesis import strategies as st

from kafka_messages import CATALOG
from korvet_fast.wire.kafka.shapes.field import NEVER, Field
from korvet_fast.wire.kafka.shapes.message import Shape
from twin.strategies import int16s, int32s, int64s

SHAPES = [shape for message in CATALOG.values() for shape in (message.request_shape, message.response_shape)]

words = st.text(max_size=6)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": int16s,
    "uint16": st.integers(0, 65535),
    "int32": int32s,
    "uint32": st.integers(0, (1 << 32) - 1),
    "int64": int64s,
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": words,
    "legacy_string": words,
    "bytes": st.binary(max_size=8),
    "records": st.one_of(st.binary(max_size=8), st.just(bytes(5000)), st.lists(st.binary(max_size=4), max_size=3)),
    "tags": st.dictionaries(st.integers(0, 300), st.binary(max_size=4), max_size=2),
}
UNKNOWN_TAGS = st.dictionaries(st.integers(5000, 5009), st.binary(max_size=4), min_size=1, max_size=2)
WRONG = st.sampled_from([None, True, -1, 1 << 70, 1.5, "text", b"bytes", [None], [1], {}, {"x": 1}, "\ud800"])


@st.composite
def values_of(draw: st.DrawFn, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """Values for a struct: each field given or left out, in or out of this version."""
    found: dict[str, Any] = {}
    for field in fields:
        if draw(st.integers(0, 3)):
            found[field.name] = draw(value_of(field, version))
    if draw(st.integers(0, 9)) == 9:
        found["_tagged"] = draw(UNKNOWN_TAGS)
    return found


@st.composite
def first_of(draw: st.DrawFn, fields: tuple[Field, ...], version: int) -> tuple[Any, ...]:
    """Values for a struct: its first fields in their order, and now and then one too many."""
    given = draw(st.integers(0, len(fields) + 1))
    return tuple(draw(value_of(field, version)) for field in fields[:given]) + (7,) * (given > len(fields))


def value_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    kind = field.kind.removeprefix("[]")
    structs = st.one_of(values_of(field.fields, version), first_of(field.fields, version))
    single = structs if kind in ("", "{}") else VALUES[kind]
    value = st.lists(single, max_size=3) if field.kind.startswith("[]") else single
    return st.one_of(st.none(), value, value) if version >= field.nullable else value


@st.composite
def spoiled(draw: st.DrawFn, values: dict[str, Any]) -> dict[str, Any]:
    """The same with one value, somewhere, that may not fit, or under a name that nobody knows."""
    name = draw(st.sampled_from([*values, "stranger"]))
    inner = values.get(name)
    if isinstance(inner, list) and inner and isinstance(inner[0], dict) and draw(st.booleans()):
        return {**values, name: [draw(spoiled(inner[0])), *inner[1:]]}
    return {**values, name: draw(WRONG)}


versions = st.integers(0, 3)


@st.composite
def tables(draw: st.DrawFn, depth: int = 0) -> tuple[Field, ...]:
    """Rows that mostly keep the rules of a table."""
    rows = []
    for name in draw(st.lists(st.sampled_from("abcd"), unique=draw(st.integers(0, 19)) != 19, max_size=4)):
        structs = ["[]", "{}"] if depth < 2 else []
        array = "[]" if draw(st.booleans()) else ""
        kind = draw(st.sampled_from([*structs, *(array + one for one in VALUES), "[]string", "string", "records"]))
        since = draw(versions)
        rows.append(
            Field(
                name,
                kind,
                since,
                draw(st.sampled_from([NEVER, NEVER, since, since + 1, 0])),
                draw(st.sampled_from([NEVER, NEVER, since, since + 1])),
                draw(st.sampled_from([..., ..., ..., None, 0, -1, "", "text", b"", True, 0.5, [], bytes(16)])),
                draw(st.sampled_from([-1, -1, -1, 0, 1, 5000])),
                draw(tables(depth + 1)) if kind in ("[]", "{}") else (),
            )
        )
    return tuple(rows)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """A shape of made-up tables, in some versions."""
    lowest = draw(versions)
    highest = draw(st.sampled_from([lowest, lowest + 1, 3, NEVER]))
    return Shape("Made", draw(tables()), lowest, highest, draw(st.sampled_from([0, 1, 2, 3, NEVER])))
