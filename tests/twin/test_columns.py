"""Columns out of batches and into them."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from twin.implementations import agree, column
from twin.profile import examples
from twin.strategies import LIMIT, batches, damaged, int64s, maybe_bytes, sealed, sequences, times

NAMES = [
    "offset", "timestamp", "key_offsets", "key", "key_valid", "value_offsets", "value", "value_valid", "header_offsets",
    "header_key_offsets", "header_key", "header_value_offsets", "header_value", "header_value_valid",
]  # fmt: skip


def cells(names: list[str], found: list[bytes | None]) -> dict[str, Any]:
    ends = [0]
    for cell in found:
        ends.append(ends[-1] + len(cell or b""))
    data = b"".join(cell or b"" for cell in found)
    return dict(zip(names, (column("i", ends), data, bytes(cell is not None for cell in found)), strict=False))


@st.composite
def column_sets(draw: st.DrawFn) -> dict[str, Any]:
    """Columns that fit together, with or without those that may be left out."""
    count = draw(st.integers(0, 5))
    rows = lambda cell: draw(st.lists(cell, min_size=count, max_size=count))  # noqa: E731
    found: dict[str, Any] = {"timestamp": column("q", rows(times)), **cells(NAMES[5:8], rows(maybe_bytes))}
    if draw(st.booleans()):
        found["offset"] = column("q", sorted(rows(st.integers(0, 50))))
    if draw(st.booleans()):
        found |= cells(NAMES[2:5], rows(maybe_bytes))
    if draw(st.booleans()):
        ends = sorted(rows(st.integers(0, 4)))
        many = ends[-1] if ends else 0
        keys = draw(st.lists(st.binary(max_size=4), min_size=many, max_size=many))
        values = draw(st.lists(maybe_bytes, min_size=many, max_size=many))
        found["header_offsets"] = column("i", [0, *ends])
        found |= cells(NAMES[9:11], list(keys)) | cells(NAMES[11:14], values)
    return found


@st.composite
def broken_sets(draw: st.DrawFn) -> dict[str, Any]:
    """One column too few, too many, too short, or with other numbers."""
    found = draw(column_sets())
    name = draw(st.sampled_from(sorted(found)))
    match draw(st.integers(0, 3)):
        case 0:
            del found[name]
        case 1:
            found[draw(st.sampled_from([*NAMES, "colour"]))] = b""
        case 2:
            data = bytes(found[name])
            found[name] = data[: draw(st.integers(0, len(data)))]
        case _:
            numbers = draw(st.lists(int64s, max_size=6))
            found[name] = (
                column("q", numbers) if name in ("offset", "timestamp") else column("i", [n % 9 - 1 for n in numbers])
            )
    return found


@given(st.one_of(sequences, damaged(sequences), damaged(batches, sealed)), st.sampled_from([LIMIT, LIMIT, 60]))
@examples(300)
def test_columns(data: bytes, limit: int) -> None:
    agree(lambda impl: impl.to_columns(data, limit))


@given(st.one_of(column_sets(), broken_sets()), int64s, st.integers(-1, 5), st.integers(-1, 3), st.integers(-1, 3))
@examples(400)
def test_assemble(found: dict[str, Any], base: int, producer: int, epoch: int, sequence: int) -> None:
    agree(lambda impl: impl.build_batch(found, 0, base, producer, epoch, sequence))


@given(column_sets(), st.integers(0, 6))
@examples(100)
def test_there_and_back(found: dict[str, Any], compression: int) -> None:
    """Through a compressed batch, whose bytes may differ, to the same columns."""

    def call(impl: ModuleType) -> object:
        batch = impl.build_batch(found, compression, 0, -1, -1, -1)
        return impl.to_columns(batch, LIMIT), [summary.count for summary in impl.batch_headers(batch, True)]

    kind, result = agree(call)
    if kind == "value":
        columns, counts = result[1]
        assert counts == ("list", [len(found["timestamp"])])
        for name in set(found) & {"timestamp", "value", "key_valid", "header_key"}:
            assert columns[name][1] == list(found[name])


def test_a_column_is_a_buffer(impl: ModuleType) -> None:
    found = impl.to_columns(b"", 0)
    assert sorted(found) == sorted(NAMES)
    assert memoryview(found["offset"]).format == "q"
    assert memoryview(found["key_offsets"]).tolist() == [0]
    assert memoryview(found["key"]).format == "B"
    assert len(found["header_offsets"]) == 1


def test_no_records_are_no_batch(impl: ModuleType) -> None:
    with pytest.raises(CodecError, match="BAD_COUNT"):
        impl.build_batch(
            {"timestamp": b"", "value_offsets": bytes(4), "value": b"", "value_valid": b""}, 0, 0, -1, -1, -1
        )
