"""The compressions: real compressors' output, damaged output, bombs, and the framings that only Kafka has."""

import gzip
import struct
from types import ModuleType

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from korvet_reference.header import Batch, write_batch
from korvet_reference.lz4 import xxh32
from korvet_reference.records import Record, write_record
from twin.implementations import agree
from twin.profile import examples
from twin.strategies import LIMIT, damaged, message

plain = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=9), st.integers(1, 9000)),
)


def lz4_frame(data: bytes, linked: bool, sums: bool, size: int) -> bytes:
    return lz4.frame.compress(
        data, block_size=size, block_linked=linked, content_checksum=sums, block_checksum=sums, store_size=sums
    )


def xerial(data: bytes) -> bytes:
    blocks = [snappy.compress(data[at : at + 1000]) for at in range(0, len(data), 1000)]
    return (
        b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)
    )


def zstd_stream(data: bytes) -> bytes:
    """Without the size in its header, as clients that compress as they go write it."""
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return compressor.compress(data) + compressor.flush()


compressed = st.one_of(
    st.tuples(st.just(1), plain.map(gzip.compress)),
    st.tuples(st.just(1), st.builds(lambda one, two: gzip.compress(one) + gzip.compress(two), plain, plain)),
    st.tuples(st.just(2), plain.map(snappy.compress)),
    st.tuples(st.just(2), plain.map(xerial)),
    st.tuples(st.just(3), st.builds(lz4_frame, plain, st.booleans(), st.booleans(), st.sampled_from([4, 5, 7]))),
    st.tuples(
        st.just(3),
        st.builds(lambda one, two: lz4_frame(one, True, True, 4) + lz4_frame(two, False, False, 4), plain, plain),
    ),
    st.tuples(st.just(4), plain.map(zstandard.compress)),
    st.tuples(st.just(4), plain.map(zstd_stream)),
    st.tuples(st.just(4), st.builds(lambda one, two: zstd_stream(one) + zstandard.compress(two), plain, plain)),
)


def batch_of(codec: int, payload: bytes) -> bytes:
    """One batch around whatever the payload is."""
    header = Batch(
        start=0, size=0, base_offset=0, last_offset=0, count=1, leader_epoch=0, attributes=codec, compression=codec,
        log_append_time=False, transactional=False, control=False, first_timestamp=0, max_timestamp=0,
        producer_id=-1, producer_epoch=-1, base_sequence=-1,
    )  # fmt: skip
    return bytes(write_batch(header, payload))


@given(compressed, st.sampled_from([LIMIT, LIMIT, 1000, 0]))
@examples(200)
def test_good(pair: tuple[int, bytes], limit: int) -> None:
    agree(lambda impl: impl.recompress(batch_of(*pair), 0, limit))


@given(compressed.flatmap(lambda pair: st.tuples(st.just(pair[0]), damaged(st.just(pair[1])))))
@examples(500)
def test_damaged(pair: tuple[int, bytes]) -> None:
    agree(lambda impl: impl.recompress(batch_of(*pair), 0, LIMIT))


@given(st.integers(1, 4), st.binary(max_size=60))
@examples(100)
def test_noise(codec: int, data: bytes) -> None:
    assert agree(lambda impl: impl.recompress(batch_of(codec, data), 0, LIMIT))[0] in ("value", "error")


def zstd_run(size: int) -> bytes:
    """A frame that announces no size, but a window of 1 KiB; then one block that repeats a byte."""
    return b"\x28\xb5\x2f\xfd\0\0" + (size << 3 | 0b011).to_bytes(3, "little") + b"x"


# Not with a limit inside the wrong block: which of its two faults is found first is each library's own affair.
@pytest.mark.parametrize("size", [1024, 1025, (1 << 21) - 1])
@pytest.mark.parametrize("limit", [1024, LIMIT])
def test_zstd_blocks_larger_than_their_frame_allows(size: int, limit: int) -> None:
    result = agree(lambda impl: impl.recompress(batch_of(4, zstd_run(size)), 0, limit))
    assert result[0] == "value" if size == 1024 else result == ("error", "CORRUPT_COMPRESSION")


@pytest.mark.parametrize("said", [0, 5, 199, 201, 255])
@pytest.mark.parametrize("limit", [200, 254, LIMIT])
def test_zstd_frames_that_give_another_size_than_they_announce(said: int, limit: int) -> None:
    frame = bytearray(zstandard.compress(b"some " * 40))
    assert frame[4:6] == b"\x20\xc8"
    frame[5] = said
    code = "DECOMPRESSION_LIMIT" if said > limit else "CORRUPT_COMPRESSION"
    for data in (bytes(frame), zstandard.compress(b"") + frame):
        assert agree(lambda impl, data=data: impl.recompress(batch_of(4, data), 0, limit)) == ("error", code)


BOMB = 1 << 26
BOMBS = {
    "gzip": (1, gzip.compress(bytes(BOMB))),
    "snappy": (2, snappy.compress(bytes(BOMB))),
    "lz4": (3, lz4.frame.compress(bytes(BOMB))),
    "zstd": (4, zstandard.compress(bytes(BOMB))),
    "zstd stream": (4, zstd_stream(bytes(BOMB))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(impl: ModuleType, name: str) -> None:
    with pytest.raises(CodecError) as caught:
        impl.check(batch_of(*BOMBS[name]), 1 << 20)
    assert caught.value.code == "DECOMPRESSION_LIMIT"


def test_a_bomb_below_the_limit_is_stopped_by_its_ratio(impl: ModuleType) -> None:
    with pytest.raises(CodecError, match="DECOMPRESSION_LIMIT"):
        impl.check(batch_of(*BOMBS["zstd"]), 1 << 30)


@pytest.mark.parametrize("chunk", [-1, 0, 1 << 30, (1 << 31) - 1, 5])
def test_xerial_chunk_lengths(impl: ModuleType, chunk: int) -> None:
    data = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, chunk) + b"\x01\x00a"
    with pytest.raises(CodecError, match="CORRUPT_COMPRESSION"):
        impl.check(batch_of(2, data), LIMIT)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown(impl: ModuleType, codec: int) -> None:
    with pytest.raises(CodecError, match="UNKNOWN_COMPRESSION"):
        impl.check(batch_of(codec, b""), LIMIT)


def old_lz4(data: bytes) -> bytes:
    """A frame whose header checksum covers the magic number too, as Kafka wrote it before 0.10."""
    frame = bytearray(lz4.frame.compress(data, store_size=False))
    frame[6] = xxh32(frame[:6]) >> 8 & 0xFF
    assert frame[6] != xxh32(frame[4:6]) >> 8 & 0xFF
    return bytes(frame)


def test_the_old_lz4_checksum_is_taken_in_message_sets(impl: ModuleType) -> None:
    wrapper = message(1, 3, 7, None, old_lz4(message(1, 0, 7, b"k", b"v")))
    assert bytes(memoryview(impl.columns(impl.lift(wrapper, LIMIT, 0), LIMIT)["value"])) == b"v"


def test_the_old_lz4_checksum_is_refused_in_batches(impl: ModuleType) -> None:
    record = write_record(Record(0, 0, None, b"v", []))
    with pytest.raises(CodecError, match="CORRUPT_COMPRESSION"):
        impl.check(batch_of(3, old_lz4(record)), LIMIT)
