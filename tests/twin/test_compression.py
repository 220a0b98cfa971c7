"""The compressions: real compressors' output, damaged output, bombs, and the framings that only Kafka has."""

import contextlib
import gzip
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast import _native as native
from korvet_fast.errors import CodecError
from korvet_reference.header import HEADER, Batch, write_batch
from korvet_reference.lz4 import xxh32
from korvet_reference.records import Record, write_record
from twin.implementations import agree
from twin.profile import examples
from twin.strategies import LIMIT, damaged, sealed

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
    kind, found = agree(lambda impl: impl.recompress(batch_of(codec, data), 0, LIMIT))
    if kind == "value":  # every other compression begins with a mark, which noise does not have
        assert (codec, found[HEADER.size :]) == (2, snappy.decompress(data))
    else:
        assert found in ("CORRUPT_COMPRESSION", "DECOMPRESSION_LIMIT")


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
        impl.validate_batch(batch_of(*BOMBS[name]), 1 << 20)
    assert caught.value.code == "DECOMPRESSION_LIMIT"


def zeros(codec: int, size: int) -> bytes:
    """A batch of one record whose value is `size` zeros."""
    payload = write_record(Record(0, 0, None, bytes(size), []))
    return batch_of(codec, gzip.compress(payload) if codec == 1 else zstandard.compress(payload))


@pytest.mark.parametrize("codec", [1, 4])
def test_finding_4_10_zeros_that_expand_a_thousand_times_are_taken(impl: ModuleType, codec: int) -> None:
    batch = zeros(codec, 10_000_000)
    assert 900 * len(batch) < 10_000_000
    assert impl.validate_batch(batch, 10_000_100)[:2] == (len(batch), 1)
    assert impl.find_time(batch, 0, 1 << 30) == (0, 0)  # and read again
    assert len(memoryview(impl.to_columns(batch, 1 << 30)["value"])) == 10_000_000
    with pytest.raises(CodecError, match="DECOMPRESSION_LIMIT"):
        impl.validate_batch(batch, 10_000_000)


def test_finding_4_10_what_a_batch_expands_to_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    paths = [tmp_path / "gzip", tmp_path / "zstd", tmp_path / "zstd stream"]
    record = write_record(Record(0, 0, None, bytes(200_000_000), []))
    for path, data in zip(
        paths, [gzip.compress(record, 1), zstandard.compress(record), zstd_stream(record)], strict=True
    ):
        path.write_bytes(batch_of(1 if path.name == "gzip" else 4, data))
    # In a process of its own: what the highest use of memory was before does not matter then.
    program = """
import resource, sys
from korvet_fast import _native
batches = [open(path, "rb").read() for path in sys.argv[1:]]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
before = peak()
for batch in batches:
    _native.validate_batch(batch, 1 << 28)
    assert _native.find_time(batch, 1, 1 << 28) is None
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", program, *map(str, paths)], check=True, capture_output=True)
    assert int(done.stdout) < 20 * 1024


def test_finding_2_4_a_failed_attempt_costs_no_more_than_its_limit() -> None:
    headers: list[tuple[bytes, bytes | None]] = [(b"", b"")] * 500_000
    batch = batch_of(4, zstandard.compress(write_record(Record(0, 0, None, None, headers))))
    assert len(batch) < 300

    def cost(limit: int) -> float:
        begin = time.thread_time()
        for _ in range(20):
            with contextlib.suppress(CodecError):
                native.validate_batch(batch, limit)
        return time.thread_time() - begin

    with pytest.raises(CodecError) as caught:
        native.validate_batch(batch, 64 * 1024)
    assert caught.value.code == "DECOMPRESSION_LIMIT"
    assert native.validate_batch(batch, 1 << 20)[1] == 1
    assert 5 * cost(64 * 1024) < cost(1 << 20)


def test_the_limit_is_for_all_batches_of_a_call() -> None:
    two = zeros(1, 1000) + zeros(4, 1000)
    assert agree(lambda impl: impl.validate_batch(two, 2100)) == ("error", "TRAILING_BYTES"), "found after all else"
    assert agree(lambda impl: impl.validate_batch(two, 1999)) == ("error", "DECOMPRESSION_LIMIT")


def records(count: int, size: int) -> bytes:
    """So many records at 0 ms, 1 ms and so on, all of them together more than is looked at in one piece."""
    random = Random(count)
    return b"".join(
        write_record(Record(at, at, None, random.randbytes(size // 2) + bytes(size - size // 2), []))
        for at in range(count)
    )


def many(codec: int, count: int, payload: bytes) -> bytes:
    """A batch that announces `count` records."""
    batch = bytearray(batch_of(codec, payload))
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    return sealed(bytes(batch))


PACKERS: dict[int, Callable[[bytes], bytes]] = {
    1: gzip.compress, 2: xerial, 3: lambda data: lz4_frame(data, True, False, 4), 4: zstd_stream
}  # fmt: skip


@pytest.mark.parametrize("codec", PACKERS)
@pytest.mark.parametrize(("count", "size"), [(3, 500_000), (12_000, 100)])
def test_batches_of_several_pieces(codec: int, count: int, size: int) -> None:
    plain = records(count, size)
    good = many(codec, count, PACKERS[codec](plain))
    assert agree(lambda impl: impl.validate_batch(good, 1 << 22))[0] == "value"
    for ms in (0, count - 1, count):
        agree(lambda impl, ms=ms: impl.find_time(good, ms, 1 << 22))
        agree(lambda impl, ms=ms: impl.find_time(good, ms, 1 << 22, count // 2))
    longer = many(codec, count, PACKERS[codec](plain + b"x"))
    fewer = many(codec, count + 1, PACKERS[codec](plain))
    wrong = many(codec, count, PACKERS[codec](plain[:-100] + b"\xff" * 10 + plain[-90:]))
    for bad in (longer, fewer, wrong, sealed(good[:-9])):
        agree(lambda impl, bad=bad: impl.validate_batch(bad, 1 << 22))
        agree(lambda impl, bad=bad: impl.validate_batch(bad, len(plain) - 1))


def test_zstd_windows_beyond_128_mib() -> None:
    for window, kind in ((17 << 3, "value"), (17 << 3 | 1, "error"), (31 << 3, "error")):
        data = b"\x28\xb5\x2f\xfd\0" + bytes([window]) + b"\x09\0\0x"
        assert agree(lambda impl, data=data: impl.recompress(batch_of(4, data), 0, LIMIT))[0] == kind


def test_a_zstd_frame_that_gives_less_than_it_announces() -> None:
    for announced in (1, 2 << 20):
        data = b"\x28\xb5\x2f\xfd\x80\0" + announced.to_bytes(4, "little") + b"\1\0\0"
        outcome = agree(lambda impl, data=data: impl.recompress(batch_of(4, data), 0, 1 << 22))
        assert outcome == ("error", "CORRUPT_COMPRESSION")


@pytest.mark.parametrize("chunk", [-1, 0, 1 << 30, (1 << 31) - 1, 5])
def test_xerial_chunk_lengths(impl: ModuleType, chunk: int) -> None:
    data = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, chunk) + b"\x01\x00a"
    with pytest.raises(CodecError, match="CORRUPT_COMPRESSION"):
        impl.validate_batch(batch_of(2, data), LIMIT)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown(impl: ModuleType, codec: int) -> None:
    with pytest.raises(CodecError, match="UNKNOWN_COMPRESSION"):
        impl.validate_batch(batch_of(codec, b""), LIMIT)


def old_lz4(data: bytes) -> bytes:
    """A frame whose header checksum covers the magic number too, as Kafka wrote it before 0.10."""
    frame = bytearray(lz4.frame.compress(data, store_size=False))
    frame[6] = xxh32(frame[:6]) >> 8 & 0xFF
    assert frame[6] != xxh32(frame[4:6]) >> 8 & 0xFF
    return bytes(frame)


def test_the_old_lz4_checksum_is_refused_in_batches(impl: ModuleType) -> None:
    record = write_record(Record(0, 0, None, b"v", []))
    with pytest.raises(CodecError, match="CORRUPT_COMPRESSION"):
        impl.validate_batch(batch_of(3, old_lz4(record)), LIMIT)
