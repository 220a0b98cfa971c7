"""Message sets of magic 0 and 1, lifted and lowered."""

import struct
import zlib
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from korvet_reference import compression
from twin.implementations import agree
from twin.profile import examples
from twin.strategies import LIMIT, damaged, int64s, message, message_sets, sequences


def sealed(data: bytes) -> bytes:
    """The same with the checksum of its first message made right."""
    if len(data) < 17:
        return data
    end = min(max(12 + struct.unpack_from(">i", data, 8)[0], 17), len(data))
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:end])) + data[16:]


sets = st.one_of(message_sets, damaged(message_sets), damaged(message_sets, sealed), st.binary(max_size=60))


@given(sets, int64s, st.sampled_from([LIMIT, LIMIT, 100]))
@examples(400)
def test_lift(data: bytes, now: int, limit: int) -> None:
    agree(lambda impl: impl.up_convert(data, limit, now))


@given(st.one_of(sequences, damaged(sequences)), st.integers(0, 2), st.sampled_from([LIMIT, LIMIT, 50]))
@examples(300)
def test_lower(data: bytes, magic: int, limit: int) -> None:
    agree(lambda impl: impl.down_convert(data, magic, limit))


@given(st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=5)), min_size=1, max_size=4), st.integers(0, 1))
@examples(50)
def test_down_and_up_again(pairs: list[tuple[bytes, bytes]], magic: int) -> None:
    data = b"".join(message(magic, 0, 5, key, value, place) for place, (key, value) in enumerate(pairs))
    assert agree(lambda impl: impl.down_convert(impl.up_convert(data, LIMIT, 5), magic, LIMIT)) == ("value", data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "BAD_COUNT"),
        (message(0, 0, 0, None, b"v")[:-1], "TRUNCATED"),
        (message(2, 0, 0, None, b"v"), "BAD_MAGIC"),
        (message(0, 4, 0, None, b"v"), "UNKNOWN_COMPRESSION"),
        (message(0, 1, 0, None, None), "BAD_RECORD"),
        (message(0, 1, 0, None, b"v"), "CORRUPT_COMPRESSION"),
        (message(1, 1, 0, None, compression.compress(1, message(0, 0, 0, None, b"v"))), "BAD_MAGIC"),
        (
            message(1, 1, 0, None, compression.compress(1, message(1, 1, 0, None, compression.compress(1, b"")))),
            "NESTED_COMPRESSION",
        ),
        (message(1, 0, -(1 << 63), None, b"v") + message(1, 0, (1 << 63) - 1, None, b"v"), "OUT_OF_RANGE"),
    ],
)
def test_what_is_refused(impl: ModuleType, data: bytes, code: str) -> None:
    with pytest.raises(CodecError) as caught:
        impl.up_convert(data, LIMIT, 0)
    assert caught.value.code == code
