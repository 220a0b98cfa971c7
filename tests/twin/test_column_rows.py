"""A producer's columns: runs of rows and batches of them, the same from lists and from Arrow."""

from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import korvet_fast._native as native
from korvet_fast.errors import CodecError
from twin.implementations import agree, column
from twin.profile import examples
from twin.strategies import int64s, maybe_bytes, times

KINDS = [None, pa.binary(), pa.large_binary()]
cells = st.lists(st.one_of(maybe_bytes, st.just(b"0123456789" * 30)), max_size=12)


def show(run: Any) -> tuple[Any, ...]:
    return run.partition, run.size, len(run), run.rows(), run.keys(), run.values()


@given(
    cells,
    st.booleans(),
    st.sampled_from(KINDS),
    st.integers(0, 3),
    st.sampled_from([60, 400, 1 << 20]),
    st.integers(1, 9),
)
@examples(400)
def test_runs(values: list[Any], keyed: bool, kind: pa.DataType, partitions: int, most: int, rows: int) -> None:
    keys = list(reversed(values)) if keyed else None

    def call(impl: ModuleType) -> object:
        lend = impl is native and kind is not None
        mine, theirs = ((pa.array(each, kind) if lend else each) for each in (keys or [], values))
        columns = impl.ColumnRows(mine if keyed else None, theirs)
        chosen = columns.choose(partitions) if keyed else None
        runs = columns.runs(chosen, most, rows)
        halves = [half for run in runs if len(run) > 1 for half in run.halves()]
        places = impl.row_places([(run, at, 100 * at - 100) for at, run in enumerate(runs)], len(columns))
        built = [run.build(5, 16 * (at % 2), 7, 1, at) for at, run in enumerate(runs)]
        return len(columns), chosen, [show(run) for run in [*runs, *halves]], places, built

    agree(call)


@given(cells, st.booleans(), st.lists(times, max_size=12), st.sampled_from([0, 0, 9, 16, 25]), int64s)
@examples(300)
def test_batches(values: list[Any], keyed: bool, stamps: list[int], compression: int, producer: int) -> None:
    keys = values[::-1] if keyed else None
    stamps = (stamps * 12)[: len(values)] if stamps else stamps
    agree(lambda impl: impl.build_rows(keys, values, column("q", stamps), compression, producer, 1, 3))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda impl: impl.ColumnRows([b""], [b"", b""]), "BAD_VALUE"),
        (lambda impl: impl.ColumnRows([b""], [b""]).choose(-1), "BAD_VALUE"),
        (lambda impl: impl.ColumnRows([b""], [b""]).runs(column("i", [1, 2]), 9, 9), "BAD_COLUMNS"),
        (lambda impl: impl.build_rows(None, [b""], column("q", []), 0, -1, -1, -1), "BAD_COLUMNS"),
        (lambda impl: impl.row_places([(impl.ColumnRows(None, [b""]).runs(None, 9, 9)[0], 0, 0)], 0), "BAD_VALUE"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, code: str) -> None:
    assert agree(call) == ("error", code)


def test_views_of_bytes_are_copied_and_other_cells_named(impl: ModuleType) -> None:
    held = bytearray(b"abc")
    (run,) = impl.ColumnRows(None, [held, memoryview(held)[1:], None]).runs(None, 1000, 10)
    held[:] = b"xyz"
    assert run.values() == [b"abc", b"bc", None]
    with pytest.raises(TypeError, match="row 1 of keys is str; send_many takes bytes or None"):
        impl.ColumnRows([b"", "text"], [b"", b""])


def test_arrow_arrays_of_other_types_are_refused() -> None:
    with pytest.raises(CodecError, match="the column values is string, and has to be binary"):
        native.ColumnRows(None, pa.array(["text"]))


def test_rows_outlive_the_columns_they_are_of() -> None:
    values = pa.array([b"%d" % n for n in range(1000)])
    (run,) = native.ColumnRows(None, values.slice(10, 500)).runs(None, 1 << 20, 1000)
    del values
    assert run.values() == [b"%d" % n for n in range(10, 510)]
