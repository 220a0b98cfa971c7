"""Message shapes, decoded and encoded: the product's own and made-up ones."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import korvet_fast._native as native
import korvet_reference as reference
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import Shape
from twin.implementations import agree, outcome, plain
from twin.profile import examples
from twin.shapes import SHAPES, shapes, spoiled, values_of
from twin.strategies import damaged

LIMIT = 1000


class Compiled(dict[int, Any]):
    """A shape in both implementations; compiled once, because that is not what is compared here."""

    def __init__(self, shape: Shape) -> None:
        super().__init__({id(impl): impl.Schema(*shape) for impl in (native, reference)})

    def of(self, impl: ModuleType) -> Any:
        return self[id(impl)]


SCHEMAS = {shape.name: (shape, Compiled(shape)) for shape in SHAPES}


def check_both_ways(compiled: Compiled, values: dict[str, Any], version: int, wrong: Any) -> None:
    """Values to bytes and back, then the bytes damaged by `wrong`, a function of bytes."""
    kind, data = agree(lambda impl: compiled.of(impl).encode(values, version))
    parts = agree(lambda impl: [bytes(part) for part in compiled.of(impl).frame(values, version)])
    if kind == "error":
        assert parts == (kind, data)
        return
    assert b"".join(parts[1][1]) == len(data).to_bytes(4, "big") + data
    kind, _ = agree(lambda impl: compiled.of(impl).decode(data, version, LIMIT))
    if kind == "value":
        # What was read is written to the same bytes: nothing is lost, unknown tagged fields included.
        assert agree(
            lambda impl: compiled.of(impl).encode(compiled.of(impl).decode(data, version, LIMIT), version)
        ) == ("value", data)
    bad = wrong(data)
    agree(lambda impl: compiled.of(impl).decode(bad, version, LIMIT))
    agree(lambda impl: compiled.of(impl).decode(bad, version, 2))


@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
@examples(40)
def test_the_shapes_of_the_product(name: str, data: st.DataObject) -> None:
    shape, compiled = SCHEMAS[name]
    version = data.draw(st.integers(shape.lowest, shape.highest))
    values = data.draw(values_of(shape.fields, version))
    check_both_ways(compiled, values, version, lambda good: data.draw(damaged(st.just(good))))


@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
@examples(15)
def test_values_that_do_not_fit(name: str, data: st.DataObject) -> None:
    shape, compiled = SCHEMAS[name]
    version = data.draw(st.integers(shape.lowest - 1, shape.highest + 1))
    values = data.draw(values_of(shape.fields, version).flatmap(spoiled))
    agree(lambda impl: compiled.of(impl).encode(values, version))


@given(st.data())
@examples(400)
def test_shapes_nobody_has(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    kind, _ = agree(lambda impl: impl.Schema(*shape).name)
    if kind == "error":
        return
    version = data.draw(st.integers(shape.lowest, shape.highest))
    values = data.draw(values_of(shape.fields, version))
    check_both_ways(Compiled(shape), values, version, lambda good: data.draw(damaged(st.just(good))))


@given(st.sampled_from(SHAPES), st.binary(max_size=80), st.integers(0, 13))
@examples(300)
def test_noise(shape: Shape, data: bytes, version: int) -> None:
    compiled = SCHEMAS[shape.name][1]
    agree(lambda impl: compiled.of(impl).decode(data, version, LIMIT))


def schema(impl: ModuleType, *fields: Field, flexible: int = 1) -> Any:
    return impl.Schema("Sample", fields, 0, 1, flexible)


def test_records_are_views_of_the_data(impl: ModuleType) -> None:
    data = bytearray(b"\0\0\0\3abc")
    view = schema(impl, Field("batches", "records")).decode(data, 0, 0)["batches"]
    assert view.obj is data
    data[4] = ord("x")
    assert view == b"xbc"


def test_large_records_are_handed_on(impl: ModuleType) -> None:
    large, small = bytes(4096), bytes(4095)
    shape = schema(impl, Field("batches", "records"))
    parts = shape.frame({"batches": [small, large, small]}, 0)
    assert [len(part) for part in parts] == [4 + 4 + 4095, 4096, 4095]
    assert parts[1] is large


ROWS = {
    "text": Field("text", "string"),
    "word": Field("word", "string", nullable=0),
    "list": Field("list", "[]int32"),
    "tagged": Field("tagged", "int32", 1, tag=0),
}


@pytest.mark.parametrize(
    ("names", "version", "data", "code"),
    [
        ("text", 0, b"\0\3ab", "TRUNCATED"),
        ("text", 0, b"\0\2ab!", "TRAILING_BYTES"),
        ("text", 0, b"\xff\xff", "UNEXPECTED_NULL"),
        ("text", 0, b"\xff\xfe", "NEGATIVE_LENGTH"),
        ("text", 0, b"\0\1\xff", "BAD_UTF8"),
        ("text", 1, b"\xff\xff\xff\xff\x1f", "VARINT_OVERFLOW"),
        ("list", 0, b"\x7f\xff\xff\xff", "COUNT_EXCEEDS_INPUT"),
        ("list", 0, b"\0\0\0\3" + bytes(12), "TOO_MANY_ELEMENTS"),
        ("list", 1, b"\xff\xff\xff\xff\x0f", "COUNT_EXCEEDS_INPUT"),
        ("tagged", 1, b"\xff\xff\xff\xff\x0f", "COUNT_EXCEEDS_INPUT"),
        ("tagged", 1, b"\2\5\0\5\0", "DUPLICATE_TAG"),
        ("tagged", 1, b"\2\5\0\4\0", "DUPLICATE_TAG"),
        ("tagged", 1, b"\1\0\5\0\0\0\1\0", "TRAILING_BYTES"),
        ("tagged", 1, b"\1\0\3\0\0\0", "TRUNCATED"),
        ("tagged", 1, b"\1\5\xff\xff\xff\xff\x0f", "TRUNCATED"),
        ("tagged", 2, b"", "UNSUPPORTED_VERSION"),
    ],
)
def test_what_cannot_be_decoded(impl: ModuleType, names: str, version: int, data: bytes, code: str) -> None:
    shape = schema(impl, *(ROWS[name] for name in names.split()))
    assert outcome(lambda _: shape.decode(data, version, 2), impl) == ("error", code)


@pytest.mark.parametrize("version", [0, 1])
def test_finding_3_6_strings_end_at_16_bits_in_compact_forms_too(impl: ModuleType, version: int) -> None:
    shape = schema(impl, ROWS["text"], Field("name", "string", 1, tag=0))
    for name in ("text", "name")[: version + 1]:
        values = {"text": "", name: "x" * 32_767}
        assert shape.decode(shape.encode(values, version), version, 0)[name] == values[name]
        values[name] += "x"
        assert outcome(lambda _, values=values: shape.encode(values, version), impl) == ("error", "BAD_VALUE")
    length = b"\x81\x80\x02"  # 32,769 as a varint: one more than the length
    for data in (length, length + b"x" * 32_768 + b"\0", b"\1\1\0\x83\x80\x02" + length + b"x" * 32_768):
        assert outcome(lambda _, data=data: shape.decode(data, 1, 0), impl) == ("error", "OVERSIZE")


def test_unknown_tags_are_kept(impl: ModuleType) -> None:
    shape = schema(impl, ROWS["tagged"])
    data = b"\3\0\4\0\0\0\7\5\0\x09\2ab"
    values = shape.decode(data, 1, 2)
    assert plain(values) == {"tagged": 7, "_tagged": {5: b"", 9: b"ab"}}
    assert shape.encode(values, 1) == data


def test_a_wrong_value_is_named_by_its_path(impl: ModuleType) -> None:
    shape = schema(impl, Field("topics", "[]", fields=(ROWS["text"],)))
    with pytest.raises(CodecError, match=r"topics\[1\]\.text"):
        shape.encode({"topics": [{"text": "a"}, {"text": 5}]}, 0)


@pytest.mark.parametrize(
    "field",
    [
        Field("a", "int33"),
        Field("a", "[]tags"),
        Field("_tagged", "int8"),
        Field("a", "int8", 2, 1),
        Field("a", "int8", nullable=0),
        Field("a", "int8", default=128),
        Field("a", "string", default=None),
        Field("a", "string", nullable=1, default=None, tag=0),
        Field("a", "{}"),
        Field("a", "int8", fields=(ROWS["text"],)),
        Field("a", "[]", fields=(Field("b", "int8", 2),)),
        Field("a", "tags", 1, tag=0),
    ],
    ids=str,
)
def test_tables_that_contradict_themselves(impl: ModuleType, field: Field) -> None:
    assert outcome(lambda _: schema(impl, field), impl) == ("error", "BAD_SCHEMA")
