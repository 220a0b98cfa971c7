"""Batches into Redis streams."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import korvet_reference as reference
from korvet_fast.errors import CodecError
from korvet_reference.header import LAST
from twin.implementations import agree, column
from twin.profile import examples
from twin.strategies import LIMIT, batches, damaged, int64s, sealed

heads = st.sampled_from([None, None, ["EVALSHA", b"5e", 2, "log", "{log}:@state", 7], []])
bases = st.one_of(st.integers(1, 5000), st.just(1700000000000 << 10), int64s)


def one(time: int, key: bytes | None, value: bytes | None, codec: int = 0) -> bytearray:
    """A batch of one record."""
    cells: dict[str, Any] = {"timestamp": column("q", [time])}
    for name, cell in (("key", key), ("value", value)):
        cells[f"{name}_offsets"] = column("i", [0, len(cell or b"")])
        cells[name] = cell or b""
        cells[f"{name}_valid"] = bytes([cell is not None])
    return reference.build_batch(cells, codec, 0, -1, -1, -1)


@given(
    st.one_of(batches, damaged(batches), damaged(batches, sealed), st.binary(max_size=80)),
    bases,
    st.one_of(st.sampled_from([10, 10, 1, 16]), st.integers(0, 64)),
    st.sampled_from([LIMIT, LIMIT, 50]),
    heads,
)
@examples(400)
def test_pack_append(data: bytes, base: int, bits: int, limit: int, first: list[Any] | None) -> None:
    agree(lambda impl: impl.encode_append("korvet:orders:0", data, base, bits, limit, first))


small = st.one_of(st.text(max_size=9), st.binary(max_size=9))
pairs = st.tuples(small, small)
whole = st.tuples(st.one_of(st.binary(max_size=9), st.binary(min_size=4095, max_size=4097)), bases, int64s, int64s)


@given(pairs, pairs, pairs, small, st.tuples(int64s, int64s, int64s), st.lists(whole, max_size=4), st.integers(0, 64))
@examples(400)
def test_append_batches(scripts: Any, keys: Any, compared: Any, end: Any, totals: Any, rows: Any, bits: int) -> None:
    try:
        agree(lambda impl: impl.encode_append_batches(scripts, keys, compared, end, totals, rows, bits))
    except UnicodeEncodeError:
        return


def test_large_batches_are_parts_of_their_own(impl: ModuleType) -> None:
    large, little = bytearray(4096), bytearray(b"little")
    words = ("guard", "close"), ("log", "{log}:@state"), ("token", b"7"), b"9", (4102, 2, -1)
    parts = impl.encode_append_batches(*words, [(large, 7, 7, 0), (little, 8, 8, 0)], 0)
    assert parts[1] is large
    compared = [2, "log", "{log}:@state", "token", b"7"]
    fields = ["end", b"9", "size", 4102, "count", 2, "time", -1]
    assert b"".join(parts) == impl.encode_commands(
        [
            ["MULTI"],
            ["EVAL", "guard", *compared],
            ["XADD", "log", "7-1", "batch", large],
            ["XADD", "log", "8-1", "batch", little],
            ["EVAL", "close", *compared, *fields],
            ["EXEC"],
        ]
    )


# specs of the mapping, at 10 bits of sequence
@pytest.mark.parametrize(
    ("offset", "entry_id"),
    [
        (1264197519485952, b"1234567890123-0"),
        (1264197519485953, b"1234567890123-1"),
        (1264197519485957, b"1234567890123-5"),
        (1264197519462400, b"1234567890100-0"),
        (5, b"0-5"),
        (LAST, b"9007199254740991-1023"),
    ],
)
def test_ids_by_hand(impl: ModuleType, offset: int, entry_id: bytes) -> None:
    packed = impl.encode_append(b"korvet:orders:0", one(1234567890123, b"order-124", b"{}", 4), offset, 10, LIMIT)
    words = [b"XADD", b"korvet:orders:0", entry_id, b"key", b"order-124", b"value", b"{}", b"timestamp"]
    assert packed == impl.encode_commands([[*words, b"1234567890123"]])


def test_null_and_empty_are_two_things(impl: ModuleType) -> None:
    null, empty = (
        impl.encode_append("log", one(-1, cell, cell), 1, 10, LIMIT, ["EVAL", "x", 0]) for cell in (None, b"")
    )
    assert null == impl.encode_commands([["EVAL", "x", 0, "0-1", "timestamp", -1]])
    assert empty == impl.encode_commands([["EVAL", "x", 0, "0-1", "key", "", "value", "", "timestamp", -1]])


def test_headers_keep_their_order(impl: ModuleType) -> None:
    headers = {
        "header_offsets": column("i", [0, 4]),
        "header_key_offsets": column("i", [0, 1, 2, 4, 4]),
        "header_key": b"aa\xff\x00",
        "header_value_offsets": column("i", [0, 1, 1, 1, 2]),
        "header_value": b"12",
        "header_value_valid": bytes([1, 0, 1, 1]),
    }
    value = {"value_offsets": column("i", [0, 0]), "value": b"", "value_valid": b"\0"}
    batch = impl.build_batch({"timestamp": column("q", [0]), **value, **headers}, 0, 0, -1, -1, -1)
    fields = ["header.a", "1", "null.header.a", "", b"header.\xff\x00", "", "header.", "2"]
    assert impl.encode_append("log", batch, 1, 0, LIMIT) == impl.encode_commands(
        [["XADD", "log", "1-0", "timestamp", 0, *fields]]
    )


def test_more_headers_than_a_script_can_take(impl: ModuleType) -> None:
    many = 3501
    headers = {
        "header_offsets": column("i", [0, many]),
        "header_key_offsets": column("i", [0] * (many + 1)),
        "header_key": b"",
        "header_value_offsets": column("i", [0] * (many + 1)),
        "header_value": b"",
        "header_value_valid": bytes(many),
    }
    value = {"value_offsets": column("i", [0, 0]), "value": b"", "value_valid": b"\0"}
    batch = impl.build_batch({"timestamp": column("q", [0]), **value, **headers}, 0, 0, -1, -1, -1)
    with pytest.raises(CodecError, match="TOO_MANY_ELEMENTS"):
        impl.encode_append("log", batch, 1, 10, LIMIT)


@pytest.mark.parametrize(("base", "bits"), [(0, 10), (-1, 10), (1, 63)])
def test_offsets_without_an_id(impl: ModuleType, base: int, bits: int) -> None:
    with pytest.raises(CodecError, match="OUT_OF_RANGE"):
        impl.encode_append("log", one(0, None, b"v"), base, bits, LIMIT)
