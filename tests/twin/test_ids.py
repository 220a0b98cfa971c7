"""Offsets and stream ids."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from twin.implementations import agree, column
from twin.profile import examples
from twin.strategies import int64s

bit_counts = st.one_of(st.integers(0, 64), st.just(10))


@given(st.lists(st.one_of(int64s, st.integers(0, 1 << 62)), max_size=6), bit_counts)
@examples(200)
def test_any_numbers(numbers: list[int], bits: int) -> None:
    agree(lambda impl: impl.pack_ids(column("q", numbers), bits))
    agree(lambda impl: impl.unpack_ids(column("q", numbers), bits))


@given(st.lists(st.integers(0, (1 << 63) - 1), max_size=6), st.integers(0, 62))
@examples(100)
def test_there_and_back(offsets: list[int], bits: int) -> None:
    def call(impl: ModuleType) -> object:
        return impl.unpack_ids(impl.pack_ids(column("q", offsets), bits), bits)

    assert agree(call) == ("value", ("q", offsets))


def test_ten_bits_by_hand(impl: ModuleType) -> None:
    assert list(memoryview(impl.pack_ids(column("q", [1264197519485952, 1023]), 10))) == [1234567890123, 0, 0, 1023]


@pytest.mark.parametrize("data", [b"", b"12345678", column("i", [1, 2])], ids=["empty", "bytes", "int32"])
def test_other_numbers_are_refused(impl: ModuleType, data: bytes) -> None:
    with pytest.raises(CodecError, match="BAD_VALUE"):
        impl.pack_ids(data, 10)
