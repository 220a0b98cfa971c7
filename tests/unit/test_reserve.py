"""Memory for somebody else to fill."""

import sys

import pytest

from korvet_fast._native import reserve


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_a_bytearray_like_any_other(size: int) -> None:
    data = reserve(size)
    assert type(data) is bytearray
    assert len(data) == size
    data[:] = b"x" * size
    data += b"y"
    assert bytes(data) == b"x" * size + b"y"


@pytest.mark.parametrize("size", [sys.maxsize, sys.maxsize + 1])
def test_more_than_there_is(size: int) -> None:
    with pytest.raises(MemoryError):
        reserve(size)
