"""Rows of Arrow into batches: the same batches as the reference makes, and out of them the same rows again."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

import korvet_fast._native as native
import korvet_reference as reference
from korvet_fast.errors import CodecError
from korvet_reference.batch import validate_batches
from korvet_reference.rows import partition_for
from twin.arrow import rows
from twin.implementations import Outcome, agree
from twin.profile import examples
from twin.strategies import LIMIT, maybe_bytes

TEXT, BINARY = st.one_of(st.none(), st.text(max_size=6)), st.one_of(maybe_bytes, st.just(b"0123456789" * 20))
STRINGS = [(TEXT, pa.string(), pa.large_string()), (BINARY, pa.binary(), pa.large_binary())]
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
NOW = 1_700_000_000_000
ROOMY = (0, 0, 1 << 20, 1 << 20, 7, 1, NOW)


def make(impl: ModuleType, batch: pa.RecordBatch, topic: str | None = "t") -> Any:
    """The `ArrowRecords` of either implementation."""
    return impl.ArrowRecords(batch if impl is native else batch.to_pydict(), topic)


@st.composite
def record_batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Columns that Spark may send: strings or binary, short or large, with or without each column, a slice of more."""
    count = draw(st.integers(0, 12))

    def column(cell: st.SearchStrategy[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(cell, min_size=count, max_size=count)), kind)

    def strings() -> pa.Array:
        cell, *kinds = draw(st.sampled_from(STRINGS))
        return column(cell, draw(st.sampled_from(kinds)))

    found = {"topic": column(st.sampled_from(["t", "other", "a-third"]), pa.string()), "value": strings()}
    if draw(st.booleans()):
        found["key"] = strings()
    if draw(st.booleans()):
        found["partition"] = column(st.sampled_from([None, None, 0, 1, 1, 2]), pa.int32())
    if draw(st.booleans()):
        pair = st.fixed_dictionaries({"key": st.text(max_size=3), "value": maybe_bytes})
        kind = draw(st.sampled_from([pa.list_, pa.large_list]))(pa.field("element", PAIR))
        found["headers"] = column(st.one_of(st.none(), st.lists(pair, max_size=3)), kind)
    if draw(st.booleans()):
        found["colour"] = column(st.booleans(), pa.bool_())
    start = draw(st.integers(0, count))
    return pa.record_batch(found).slice(start, draw(st.integers(0, count - start)))


def batches(batch: pa.RecordBatch, topic: str | None, *arguments: Any) -> Outcome:
    """One call to both implementations, which must agree in everything."""

    def call(impl: ModuleType) -> object:
        made = make(impl, batch, topic)
        return made.topics(), made.batches(*arguments)

    return agree(call)


topics = st.sampled_from([None, None, "t"])
limits = st.sampled_from([1 << 20, 1 << 20, 150])
counts = st.fixed_dictionaries({name: st.integers(1, 4) for name in ("t", "other", "a-third")})


@given(
    record_batches(), topics, counts, st.integers(0, 9), st.integers(0, 700), st.sampled_from([1 << 20, 1 << 20, 150])
)
@examples(400)
def test_batches(
    batch: pa.RecordBatch, topic: str | None, many: dict[str, int], keyless: int, size: int, record: int
) -> None:
    sequences = {name: [(1 << 31) - 2 - place for place in range(count)] for name, count in many.items()}
    batches(batch, topic, sequences, keyless, 0, size, record, 7, 1, NOW)


@given(record_batches(), counts, st.integers(0, 4), st.integers(0, 900))
@examples(200)
def test_there_and_back(batch: pa.RecordBatch, many: dict[str, int], compression: int, size: int) -> None:
    """All rows come back from the batches, in their order within a partition, and where Kafka would put them."""
    numbered = pa.array([b"%d" % place for place in range(len(batch))], pa.binary())
    batch = batch.set_column(batch.schema.get_field_index("value"), "value", numbered)
    sequences = {name: [0] * (count + 2) for name, count in many.items()}
    logs: dict[tuple[str, int], bytearray] = defaultdict(bytearray)
    stored: dict[tuple[str, int], int] = defaultdict(int)
    made = native.ArrowRecords(batch, None).batches(sequences, 0, compression, size, 1 << 20, 7, 1, NOW)
    for topic, partition, records, data in made:
        (header,) = validate_batches(data, LIMIT)
        assert (header.count, header.producer_id, header.producer_epoch) == (records, 7, 1)
        assert header.base_sequence == stored[topic, partition]
        native.assign_offsets(data, stored[topic, partition], 0, None, None)
        stored[topic, partition] += records
        logs[topic, partition] += data

    given = batch.to_pylist()
    seen: set[int] = set()
    for (topic, partition), data in logs.items():
        names = ["value", "key", "headers", "timestamp", "offset"]
        page = native.to_arrow(data, topic, partition, names, 0, 1 << 62, 1 << 40, 1 << 40, LIMIT)
        numbers = []
        for place, (value, key, headers, time, offset) in enumerate(rows(page)):
            numbers.append(int(value))
            row = given[int(value)]
            wanted = row.get("key")
            assert key == (wanted.encode() if isinstance(wanted, str) else wanted)
            assert headers == ([(pair["key"], pair["value"]) for pair in row.get("headers") or ()] or None)
            assert (time, offset, topic) == (1000 * NOW, place, row["topic"])
            if row.get("partition") is not None:
                assert partition == row["partition"]
            elif key is not None:
                assert partition == (murmur2(key) & 0x7FFFFFFF) % len(sequences[topic])
        assert numbers == sorted(set(numbers))
        seen.update(numbers)
    assert seen == set(range(len(batch)))


@given(st.binary(max_size=40), st.integers(1, 1000))
@examples(200)
def test_a_key_goes_where_kafka_python_sends_it(key: bytes, many: int) -> None:
    assert partition_for(key, many) == (murmur2(key) & 0x7FFFFFFF) % many
    ((_, partition, _, _),) = native.ArrowRecords(pa.record_batch({"value": [b""], "key": [key]}), "t").batches(
        {"t": [0] * many}, *ROOMY
    )
    assert partition == partition_for(key, many)


def test_rows_without_key_fill_one_batch_after_the_other(impl: ModuleType) -> None:
    batch = pa.record_batch({"value": [b"0123456789"] * 7})
    made = make(impl, batch).batches({"t": [5, 6, 7]}, 4, 0, 40, 100, 7, 0, NOW)
    assert [(topic, partition, count) for topic, partition, count, _ in made] == [
        ("t", 1, 2), ("t", 2, 2), ("t", 0, 2), ("t", 1, 1)
    ]  # fmt: skip
    assert [native.batch_headers(data, True)[0].base_sequence for _, _, _, data in made] == [6, 7, 5, 8]


def test_sequence_numbers_begin_anew_after_the_last(impl: ModuleType) -> None:
    batch = pa.record_batch({"value": [b"0123456789"] * 5})
    made = make(impl, batch).batches({"t": [(1 << 31) - 1]}, 0, 0, 40, 100, 7, 0, NOW)
    assert [native.batch_headers(data, True)[0].base_sequence for _, _, _, data in made] == [(1 << 31) - 1, 1, 3]
    made = make(impl, batch).batches({"t": [9]}, 0, 0, 1 << 20, 100, -1, -1, NOW)
    assert [native.batch_headers(data, True)[0].base_sequence for _, _, _, data in made] == [-1]


def test_topics_in_order_of_first_use(impl: ModuleType) -> None:
    batch = pa.record_batch({"topic": ["b", "a", "a", "b", "c"], "value": ["1", "2", "3", "4", "5"]})
    made = make(impl, batch, None)
    assert made.topics() == ["b", "a", "c"]
    found = made.batches({"a": [0], "b": [0], "c": [0]}, *ROOMY)
    assert [(topic, count) for topic, _, count, _ in found] == [("b", 2), ("a", 2), ("c", 1)]
    assert make(impl, batch, "d").topics() == ["d"]
    assert make(impl, batch.slice(0, 0), None).topics() == []
    assert make(impl, batch.slice(0, 0)).batches({"t": [0]}, *ROOMY) == []


def test_the_row_at_fault_is_named(impl: ModuleType) -> None:
    values = pa.array([b"v", b"w" * 200, b"x"])
    pairs = [[{"key": "k", "value": None}], [{"key": None, "value": b""}], None]
    for columns, topic, code, text in (
        ({"topic": ["a", None, "b"]}, None, "BAD_COLUMNS", "row 1: the column topic is null"),
        ({"partition": pa.array([0, None, 2], pa.int32())}, "t", "BAD_COLUMNS", "row 2"),
        ({"partition": pa.array([0, -1, 0], pa.int32())}, "t", "BAD_COLUMNS", "row 1"),
        ({"headers": pa.array(pairs, pa.list_(PAIR))}, "t", "BAD_COLUMNS", "row 1: a header is null, or has no key"),
        ({"headers": pa.array([None, None, [None]], pa.list_(PAIR))}, "t", "BAD_COLUMNS", "row 2: a header is null"),
        ({}, "t", "OVERSIZE", "row 1"),
    ):
        with pytest.raises(CodecError, match=text) as caught:
            most = 100 if code == "OVERSIZE" else 1 << 20
            batch = pa.record_batch({"value": values, **columns})
            make(impl, batch, topic).batches({"t": [0, 0]}, 0, 0, 1 << 20, most, 7, 1, NOW)
        assert caught.value.code == code


def test_topics_need_sequence_numbers(impl: ModuleType) -> None:
    made = make(impl, pa.record_batch({"value": [b"v"]}))
    for sequences in ({}, {"other": [0]}, {"t": []}):
        with pytest.raises(CodecError) as caught:
            made.batches(sequences, *ROOMY)
        assert caught.value.code == "BAD_VALUE"
    with pytest.raises(CodecError, match="UNKNOWN_COMPRESSION"):
        made.batches({"t": [0]}, 0, 5, *ROOMY[2:])


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"value": pa.array([1])}, "the column value is int64, and has to be string or binary"),
        ({"value": pa.array([b"v"], pa.binary_view())}, "the column value is binary_view"),
        ({"value": pa.array(["v"]).dictionary_encode()}, "the column value is .*dictionary"),
        ({"value": pa.array([b"vv"], pa.binary(2))}, "the column value is of Arrow's format"),
        ({"value": [b"v"], "key": pa.array([True])}, "the column key is bool"),
        ({"value": [b"v"], "partition": [1]}, "the column partition is int64, and has to be int32"),
        ({"value": [b"v"], "topic": [b"t"]}, "the column topic is binary, and has to be string"),
        ({"value": [b"v"], "headers": ["h"]}, "the column headers is not a list"),
        ({"value": [b"v"], "headers": [[{"key": b"k", "value": b"v"}]]}, "the column headers is not a list"),
        ({"value": [b"v"], "headers": [[{"key": "k"}]]}, "the column headers is not a list"),
        ({"key": [b"v"]}, "there is no column value"),
        ({"value": [b"v"]}, "neither a topic nor a column topic"),
    ],
)
def test_columns_of_other_types_are_refused(columns: dict[str, Any], text: str) -> None:
    with pytest.raises(CodecError, match=text) as caught:
        native.ArrowRecords(pa.record_batch(columns), None if "topic" in text else "t")
    assert caught.value.code == "BAD_COLUMNS"


def test_arrays_that_begin_anywhere() -> None:
    """Slices of slices, and structs whose own offset counts for their fields, as pyarrow exports them."""
    pairs = [[{"key": f"k{place}", "value": b"%d" % place}] * (place % 3) or None for place in range(40)]
    whole = pa.table(
        {
            "value": [None if place % 5 == 0 else b"%d" % place for place in range(40)],
            "headers": pa.chunked_array([pa.array(pairs[:17], pa.list_(PAIR)), pa.array(pairs[17:], pa.list_(PAIR))]),
        }
    )
    (joined,) = whole.combine_chunks().to_batches()
    for batch in (joined.slice(9).slice(2, 11), joined.slice(9), joined.to_struct_array()[9:20]):
        given = batch.to_pylist()
        ((_, _, records, data),) = native.ArrowRecords(batch, "t").batches({"t": [0]}, *ROOMY)
        page = native.to_arrow(data, "t", 0, ["value", "headers"], 0, 99, 99, 1 << 20, LIMIT)
        assert pa.record_batch(page).to_pylist() == given
        assert records == len(given)


def test_only_arrow_is_taken_and_only_once() -> None:
    class Used:
        def __init__(self) -> None:
            self.capsules = pa.record_batch({"value": [b"v"]}).__arrow_c_array__()

        def __arrow_c_array__(self) -> Any:
            return self.capsules

    used = Used()
    assert native.ArrowRecords(used, "t").topics() == ["t"]
    with pytest.raises(CodecError, match="BAD_VALUE"):
        native.ArrowRecords(used, "t")
    with pytest.raises(AttributeError):
        native.ArrowRecords({"value": [b"v"]}, "t")
    with pytest.raises(CodecError, match="a record batch is wanted"):
        native.ArrowRecords(pa.array([b"v"]), "t")


def test_any_thread_may_read_and_release() -> None:
    batch = pa.record_batch({"value": [b"%05d" % place for place in range(3000)]})
    shared = native.ArrowRecords(batch, "t")

    def once(_: int) -> pa.Array:
        ((_, _, _, data),) = shared.batches({"t": [0]}, *ROOMY)
        return pa.record_batch(native.to_arrow(data, "t", 0, ["value"], 0, 3000, 3000, 1 << 20, LIMIT)).column(0)

    with ThreadPoolExecutor(4) as pool:
        for column in pool.map(once, range(100)):  # made there, released here
            assert column.equals(batch.column(0))


def test_rows_keep_what_they_read() -> None:
    batch = pa.record_batch({"value": [bytes([place]) * 1000 for place in range(100)]})
    made = native.ArrowRecords(batch, "t")
    del batch
    pa.record_batch({"value": [b"\xff" * 1000] * 100})  # in what was given back, if anything was
    ((_, _, _, data),) = made.batches({"t": [0]}, *ROOMY)
    page = reference.to_arrow(data, "t", 0, ["value"], 0, 100, 100, 1 << 20, LIMIT)
    assert [value for (value,) in page] == [bytes([place]) * 1000 for place in range(100)]
