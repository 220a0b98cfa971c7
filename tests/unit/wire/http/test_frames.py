"""The heads of requests, however the bytes that hold them are cut."""

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.wire.http.frames import LIMIT, RequestHeads

HEADS = (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"GET /x HTTP/1.0\n\n", b"\n\r\n", b"HEAD / HTTP/1.1\nhost: b\n\r\n")


@given(st.lists(st.sampled_from(HEADS), max_size=6), st.binary(max_size=20), st.data())
def test_heads_are_the_same_however_they_are_cut(heads: list[bytes], rest: bytes, data: st.DataObject) -> None:
    rest = rest.replace(b"\n", b".")
    stream = b"".join(heads) + rest
    frames, got = RequestHeads(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        most = data.draw(st.integers(1, 3))
        some = frames.feed(stream[:size], most)
        got += some
        while len(some) == most:
            some = frames.feed(b"", most)
            got += some
        stream = stream[size:]
    assert [bytes(head) for head in got] == heads
    assert frames.pending == len(rest)


def test_a_head_that_is_too_long_is_given_in_part_and_ends_the_connection() -> None:
    for stream in (b"a" * (LIMIT + 1), b"a" * LIMIT + b"\n\n", b"GET / HTTP/1.1\r\n" * LIMIT):
        frames = RequestHeads()
        (head,) = frames.feed(stream, 64)
        assert head == stream[:LIMIT]
        assert frames.pending == 0
        assert frames.feed(HEADS[0], 64) == []


def test_the_longest_head_is_whole() -> None:
    longest = b"a" * (LIMIT - 2) + b"\n\n"
    assert RequestHeads().feed(longest, 64) == [longest]


def test_a_slow_head_is_searched_once() -> None:
    """Each byte is looked at a few times at most: else a head of 16 KiB, a byte at a time, takes 128 million looks."""
    frames = RequestHeads()
    for _ in range(LIMIT - 1):
        assert frames.feed(b"a", 1) == []
    assert frames._searched == frames.pending == LIMIT - 1
