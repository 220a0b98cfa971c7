"""Frames: any bytes, cut in any way, give the same frames and the same errors."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import CodecError
from twin.implementations import agree
from twin.profile import examples
from twin.strategies import damaged

bodies = st.lists(st.binary(max_size=40), max_size=5)
streams = bodies.map(lambda found: b"".join(len(body).to_bytes(4, "big") + body for body in found))


def fed(data: bytes, step: int, limit: int) -> Any:
    """All frames of `data`, `step` bytes at a time; what is pending at the end; or the error that ends it, twice."""

    def call(impl: ModuleType) -> tuple[list[bytearray], list[int], str]:
        frames = impl.Frames(limit)
        found: list[bytearray] = []
        pending = []
        for at in range(0, len(data), step):
            try:
                found += frames.feed(data[at : at + step])
            except CodecError as error:
                with pytest.raises(CodecError) as again:
                    frames.feed(b"")
                assert (again.value.code, again.value.message) == (error.code, error.message)
                return found, pending, error.code
            pending.append(frames.pending)
        return found, pending, ""

    return call


@given(
    st.one_of(streams, damaged(streams), st.binary(max_size=60)), st.integers(1, 50), st.sampled_from([3, 40, 1 << 30])
)
@examples(200)
def test_any_cut(data: bytes, step: int, limit: int) -> None:
    agree(fed(data, step, limit))
    agree(fed(data, 1, limit))
    agree(fed(data, len(data) + 1, limit))


@given(bodies, st.integers(1, 50))
@examples(50)
def test_what_goes_in_comes_out(found: list[bytes], step: int) -> None:
    data = b"".join(len(body).to_bytes(4, "big") + body for body in found)
    kind, (_, parts) = agree(fed(data, step, 40))
    assert kind == "value"
    assert parts[0] == ("list", found)
    assert parts[2] == ""


@given(streams, st.integers(1, 50), st.integers(1, 3))
@examples(50)
def test_frames_may_be_asked_for_a_few_at_a_time(data: bytes, step: int, most: int) -> None:
    def call(impl: ModuleType) -> tuple[list[bytearray], list[tuple[int, int]]]:
        frames, found, seen = impl.Frames(40), [], []
        for at in range(0, len(data), step):
            found += frames.feed(data[at : at + step], most)
            seen.append((frames.pending, frames.announced))
        while some := frames.feed(b"", most):
            assert len(some) <= most
            found += some
            seen.append((frames.pending, frames.announced))
        return found, seen

    kind, (_, parts) = agree(call)
    assert kind == "value"
    assert agree(fed(data, step, 40))[1][1][0] == parts[0]


def test_the_limit_may_change_between_frames(impl: ModuleType) -> None:
    frames = impl.Frames(10)
    assert frames.feed(b"\0\0\0\x0aabc") == []
    frames.limit = 3
    assert frames.feed(b"defghij\0\0\0\3xyz") == [b"abcdefghij", b"xyz"]
    assert frames.limit == 3
    with pytest.raises(CodecError, match="OVERSIZE"):
        frames.feed(b"\0\0\0\4")


def put(data: bytes, steps: list[tuple[bool, int]]) -> Any:
    """As `fed`, but where the step says so the bytes are put into their place, if there is one."""

    def call(impl: ModuleType) -> tuple[list[bytearray], list[tuple[int, int]]]:
        frames, found, seen = impl.Frames(1 << 20), [], []
        left = memoryview(data)
        for direct, step in steps:
            place = frames.rest() if direct else None
            now = left[: step if place is None else min(step, len(place))]
            left = left[len(now) :]
            if place is None:
                found += frames.feed(now)
            else:
                place[: len(now)] = now
                whole = frames.advance(len(now))
                found += [] if whole is None else [whole]
            seen.append((frames.pending, -1 if place is None else len(place)))
            del place  # the next one may be elsewhere
        return found, seen

    return call


@given(
    st.lists(st.integers(0, 300).map(lambda kib: kib << 10), max_size=3),
    st.lists(st.tuples(st.booleans(), st.integers(1, 200_000)), max_size=30),
)
@examples(100)
def test_bytes_put_into_their_place(sizes: list[int], steps: list[tuple[bool, int]]) -> None:
    bodies = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    data = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    kind, (_, (found, _)) = agree(put(data, steps))
    assert kind == "value"
    assert found == ("list", bodies[: len(found[1])])


def test_more_bytes_than_there_is_room_for(impl: ModuleType) -> None:
    frames = impl.Frames(1 << 20)
    assert frames.rest() is None
    frames.feed((1 << 20).to_bytes(4, "big") + bytes(100_000))
    place = frames.rest()
    assert len(place) == 100_000
    with pytest.raises(CodecError, match="BAD_VALUE"):
        frames.advance(100_001)
    del place
    assert frames.advance(100_000) is None
    assert frames.pending == 200_004


def test_a_frame_belongs_to_the_caller(impl: ModuleType) -> None:
    frame = impl.Frames(10).feed(b"\0\0\0\2ab")[0]
    frame[0] = ord("x")
    assert frame == b"xb"
