"""Values to columns and columns to records, without a broker."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast._native import assign_offsets, build_batch, build_rows, to_columns
from korvet_fast.client.consumer import unpack
from korvet_fast.client.protocol.errors import ClientError, explain
from korvet_fast.client.protocol.errors import check_error_code as check_code
from korvet_reference.batch import validate_batches

LIMIT = 1 << 20


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=50), st.integers(0, 60), st.integers(0, 4))
def test_values_come_back_from_the_offset_asked_for(values: list[bytes], first: int, compression: int) -> None:
    batch = bytearray(build_rows(None, values, array("q", [5]) * len(values), compression, -1, -1, -1))
    assign_offsets(batch, 7, 0, None, None)
    (summary,) = validate_batches(batch, LIMIT)
    assert (summary.count, summary.base_offset, summary.compression) == (len(values), 7, compression)
    records = list(unpack(3, to_columns(batch, LIMIT), first))
    assert [(each.partition, each.offset, each.value) for each in records] == [
        (3, offset, value) for offset, value in enumerate(values, 7) if offset >= first
    ]
    assert all(each.key is None and each.headers == [] and each.timestamp > 0 for each in records)


def test_keys_nulls_and_headers_come_back() -> None:
    batch = build_batch(
        {
            "timestamp": memoryview(array("q", [5, 6])),
            "key_offsets": memoryview(array("i", [0, 3, 3])),
            "key": b"key",
            "key_valid": b"\1\0",
            "value_offsets": memoryview(array("i", [0, 0, 5])),
            "value": b"value",
            "value_valid": b"\0\1",
            "header_offsets": memoryview(array("i", [0, 2, 3])),
            "header_key_offsets": memoryview(array("i", [0, 1, 2, 3])),
            "header_key": b"aab",
            "header_value_offsets": memoryview(array("i", [0, 1, 2, 2])),
            "header_value": b"12",
            "header_value_valid": b"\1\1\0",
        },
        0,
        0,
        -1,
        -1,
        -1,
    )
    first, second = unpack(0, to_columns(batch, LIMIT), 0)
    assert (first.timestamp, first.key, first.value) == (5, b"key", None)
    assert first.headers == [("a", b"1"), ("a", b"2")]
    assert (second.timestamp, second.key, second.value, second.headers) == (6, None, b"value", [("b", None)])


def test_error_codes_in_words() -> None:
    assert explain(3) == "There is no such topic or partition here (UNKNOWN_TOPIC_OR_PARTITION)"
    assert explain(3, "no topic 'x'") == "no topic 'x' (UNKNOWN_TOPIC_OR_PARTITION)"
    assert explain(18) == "the broker refused (error 18)"
    check_code("topic 'x'", 0)
    with pytest.raises(ClientError, match=r"^topic 'x': .*\(UNKNOWN_TOPIC_OR_PARTITION\)$"):
        check_code("topic 'x'", 3)
