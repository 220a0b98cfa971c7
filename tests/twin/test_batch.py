"""Version 2 batches: good ones, damaged ones, damaged ones with a right checksum, and bytes that are none."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from twin.implementations import IMPLEMENTATIONS, agree, outcome
from twin.profile import examples
from twin.strategies import LIMIT, batches, compressions, damaged, int32s, int64s, sealed, sequences

one = st.one_of(batches, damaged(batches), damaged(batches, sealed))
some = st.one_of(sequences, damaged(sequences), damaged(sequences, sealed), st.binary(max_size=90))
maybe_times = st.one_of(st.none(), int64s)


@given(some)
@examples(300)
def test_validate_several(data: bytes) -> None:
    """Each of them is verified before they are refused for being several."""
    agree(lambda impl: impl.validate_batch(data, LIMIT))


@given(one)
@examples(300)
def test_validate_one(data: bytes) -> None:
    agree(lambda impl: impl.validate_batch(data, LIMIT))


@given(some, st.booleans())
@examples(200)
def test_headers(data: bytes, verify: bool) -> None:
    agree(lambda impl: impl.batch_headers(data, verify))


@given(some, st.integers(0, 140), st.integers(0, 140), st.integers(0, 500))
@examples(200)
def test_span(data: bytes, start: int, limit: int, max_bytes: int) -> None:
    agree(lambda impl: impl.slice_batches(data, start, limit, max_bytes))


@given(one, int64s, int32s, maybe_times, maybe_times)
@examples(200)
def test_assign_offsets(data: bytes, offset: int, epoch: int, latest: int | None, appended: int | None) -> None:
    def call(impl: ModuleType) -> bytearray:
        batch = bytearray(data)
        impl.assign_offsets(batch, offset, epoch, latest, appended)
        return batch

    agree(call)


@given(one, int64s)
@examples(200)
def test_find_time(data: bytes, ms: int) -> None:
    agree(lambda impl: impl.find_time(data, ms, LIMIT))


@given(one, st.one_of(st.just(0), int64s), st.one_of(st.integers(0, 9), int64s))
@examples(200)
def test_find_time_from_an_offset(data: bytes, ms: int, start: int) -> None:
    agree(lambda impl: impl.find_time(data, ms, LIMIT, start))


@given(one, st.integers(0, 7))
@examples(200)
def test_recompress(data: bytes, compression: int) -> None:
    def call(impl: ModuleType) -> object:
        """The part of the result to compare: two compressors need not give the same bytes."""
        out = impl.recompress(data, compression, LIMIT)
        (header,) = impl.batch_headers(out, True) or [None]
        same = header and (header.count, header.last_offset, header.attributes, header.max_timestamp)
        return same, bytes(impl.recompress(out, 0, LIMIT))

    agree(call)


@given(batches, compressions)
@examples(100)
def test_each_reads_what_the_other_compressed(data: bytes, compression: int) -> None:
    for compressor in IMPLEMENTATIONS.values():
        kind, compressed = outcome(lambda impl: impl.recompress(data, compression, LIMIT), compressor)
        if kind == "value":
            agree(lambda impl, data=compressed: impl.recompress(data, 0, LIMIT))


def test_a_read_only_buffer_is_not_stamped(impl: ModuleType) -> None:
    with pytest.raises(CodecError, match="BAD_VALUE"):
        impl.assign_offsets(memoryview(bytes(61)), 0, 0, None, None)
