"""Message sets of Kafka 0.6 and 0.7: checked and stored, served to old clients and to new ones."""

import struct
import zlib
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from korvet_reference import compression
from korvet_reference import up_convert as store
from korvet_reference.header import seal
from twin.implementations import agree
from twin.profile import examples
from twin.strategies import LIMIT, damaged, int64s, message, message_sets, sealed, sequences

PIECE = 1 << 16


def mended(data: bytes) -> bytes:
    """The same with the checksum of its first message made right."""
    if len(data) < 10 or data[4] > 1:
        return data
    start = 9 + data[4]
    end = max(4 + struct.unpack_from(">i", data)[0], start)
    return data[: start - 4] + struct.pack(">I", zlib.crc32(data[start:end])) + data[start:]


def log_of(data: bytes, base: int = 5, size: int = PIECE) -> bytes:
    """The set as a log has it from offset `base` on; nothing of a set that is wrong."""
    try:
        pieces = store(data, LIMIT, LIMIT, size)
    except CodecError:
        return b""
    log = b""
    for batch, span in pieces:
        struct.pack_into(">q", batch, 0, base)
        seal(batch)
        log += batch
        base += span
    return log


def served(impl: Any, log: bytes, start: int, end: int) -> bytes:
    """What a client of 0.7 is given of the log."""
    data = bytearray(log)
    return bytes(data[: impl.down_convert(data, start, end)])


sets = st.one_of(message_sets, damaged(message_sets), damaged(message_sets, mended), st.binary(max_size=60))
logs = st.one_of(
    message_sets.map(log_of), damaged(message_sets.map(lambda data: log_of(data, 3, 100)), sealed), sequences
)
limits = st.sampled_from([LIMIT, LIMIT, 100, 20])


@given(sets, limits, limits, st.sampled_from([PIECE, 100, 1]))
@examples(400)
def test_up_convert(data: bytes, largest: int, limit: int, size: int) -> None:
    agree(lambda impl: impl.up_convert(data, largest, limit, size))


@given(sets)
@examples(200)
def test_whole_messages(data: bytes) -> None:
    agree(lambda impl: impl.whole_messages(data))


@given(logs, st.one_of(st.integers(0, 300), int64s), st.one_of(st.integers(0, 300), int64s))
@examples(300)
def test_down_convert(data: bytes, start: int, end: int) -> None:
    agree(lambda impl: served(impl, data, start, end))


@given(logs, st.one_of(st.integers(0, 300), int64s), st.sampled_from([LIMIT, 200, 0]), limits)
@examples(400)
def test_to_values(data: bytes, offset: int, max_bytes: int, limit: int) -> None:
    agree(lambda impl: impl.to_values(data, offset, max_bytes, limit))


@given(st.one_of(sequences, damaged(sequences, sealed)), limits)
@examples(300)
def test_to_messages(data: bytes, limit: int) -> None:
    agree(lambda impl: impl.to_messages(data, limit))


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
@examples(50)
def test_what_was_sent_is_served(payloads: list[bytes]) -> None:
    data = b"".join(message(place % 2, 0, payload) for place, payload in enumerate(payloads))

    def stored(impl: Any) -> bytes:
        ((batch, span),) = impl.up_convert(data, LIMIT, LIMIT, PIECE)
        return served(impl, batch, 0, span)

    assert agree(stored) == ("value", data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (message(0, 0, b"v")[:-1], "TRUNCATED"),
        (b"\0\0\0", "TRUNCATED"),
        (struct.pack(">i", -1), "BAD_LENGTH"),
        (struct.pack(">i", 0), "BAD_LENGTH"),
        (struct.pack(">i", 4) + bytes(4), "BAD_LENGTH"),
        (message(2, 0, b"v"), "BAD_MAGIC"),
        (message(1, 3, b"v"), "UNKNOWN_COMPRESSION"),
        (message(1, 1, b"v"), "CORRUPT_COMPRESSION"),
        (message(1, 1, compression.compress(1, b"\0")), "TRUNCATED"),
        (message(1, 0, bytes(101)), "OVERSIZE"),
    ],
)
def test_what_is_refused(impl: ModuleType, data: bytes, code: str) -> None:
    with pytest.raises(CodecError) as caught:
        impl.up_convert(data, 100, LIMIT, PIECE)
    assert caught.value.code == code
