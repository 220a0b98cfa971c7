"""A byte stream cut into frames, however it arrives, and how much memory a frame gets before its bytes come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.client.protocol.frames import WINDOW, FrameReader
from korvet_fast.errors import CodecError

LIMIT = 1 << 20


def prefixed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def feed(reader: FrameReader, data: bytes, most: int, room: int = 64) -> list[bytes]:
    """The frames of the stream when the system gives `most` bytes at a time."""
    frames = []
    at = 0
    while True:
        while (frame := reader.take(room)) is not None:
            frames.append(bytes(frame))
        if at == len(data):
            return frames
        buffer = reader.get_buffer()
        count = min(most, len(buffer), len(data) - at)
        buffer[:count] = data[at : at + count]
        reader.buffer_updated(count)
        at += count


@given(
    st.lists(st.binary(min_size=4, max_size=300), max_size=8),
    st.integers(1, 400),
    st.integers(1, 400),
)
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames: list[bytes], most: int, room: int) -> None:
    assert feed(FrameReader(LIMIT), b"".join(map(prefixed, frames)), most, room) == frames


@pytest.mark.parametrize("most", [WINDOW - 1, WINDOW, LIMIT])
def test_large_frames_and_small_ones_in_turn(most: int) -> None:
    frames = [bytes([number]) * size for number, size in enumerate((WINDOW, 4, WINDOW - 4, 5, 10 * WINDOW + 1, 7))]
    assert feed(FrameReader(LIMIT), b"".join(map(prefixed, frames)), most) == frames


def test_a_length_in_pieces_at_the_end_of_the_window() -> None:
    first, second = bytes(WINDOW - 6), b"second"  # of the second length two bytes fit
    assert feed(FrameReader(LIMIT), prefixed(first) + prefixed(second), WINDOW) == [first, second]


@pytest.mark.parametrize("length", [-1, 0, 3, LIMIT + 1, -(1 << 31)])
def test_an_illegal_length(length: int) -> None:
    with pytest.raises(CodecError, match=rf"BAD_LENGTH: an answer of {length} bytes"):
        feed(FrameReader(LIMIT), length.to_bytes(4, "big", signed=True), 4)


def test_the_kernel_may_write_a_whole_frame_at_once_if_its_room_suffices() -> None:
    reader = FrameReader(LIMIT)
    assert feed(reader, (100_000).to_bytes(4, "big") + b"1234", 8, room=200_000) == []
    assert len(reader.get_buffer()) == 100_000 - 4


def test_memory_follows_what_came_and_not_what_was_announced() -> None:
    reader = FrameReader(LIMIT)
    assert feed(reader, LIMIT.to_bytes(4, "big"), 4, room=10) == []
    sizes = []
    while (frame := reader.take(10)) is None:
        buffer = reader.get_buffer()
        sizes.append(len(buffer))
        reader.buffer_updated(len(buffer))
    assert sizes[:4] == [10, 10, 20, 40]
    assert len(frame) == sum(sizes) == LIMIT
