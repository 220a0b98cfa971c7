"""The heads of requests, however the bytes that hold them are cut."""

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.wire.http.frames import FORM_LIMIT, LIMIT, Requests

FORM = b"POST /x HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\na=b&c=\n\n\n"
HEADS = (
    FORM,
    b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /x HTTP/1.0\n\n",
    b"\n\r\n",
    b"HEAD / HTTP/1.1\nhost: b\n\r\n",
)


@given(st.lists(st.sampled_from(HEADS), max_size=6), st.binary(max_size=20), st.data())
def test_heads_are_the_same_however_they_are_cut(heads: list[bytes], rest: bytes, data: st.DataObject) -> None:
    rest = rest.replace(b"\n", b".")
    stream = b"".join(heads) + rest
    frames, got = Requests(), []
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
        frames = Requests()
        (head,) = frames.feed(stream, 64)
        assert head == stream[:LIMIT]
        assert frames.pending == 0
        assert frames.feed(HEADS[0], 64) == []


def test_the_longest_head_is_whole() -> None:
    longest = b"a" * (LIMIT - 2) + b"\n\n"
    assert Requests().feed(longest, 64) == [longest]


def test_a_slow_head_is_searched_once() -> None:
    """Each byte is looked at a few times at most: else a head of 16 KiB, a byte at a time, takes 128 million looks."""
    frames = Requests()
    for _ in range(LIMIT - 1):
        assert frames.feed(b"a", 1) == []
    assert frames._searched == frames.pending == LIMIT - 1


def test_a_body_that_is_no_form_is_not_waited_for() -> None:
    """It is left where the next head should be; h11 refuses the head in front of it."""
    long = FORM.replace(b": 9", f": {FORM_LIMIT + 1}".encode())
    for stream in (
        long,
        FORM.replace(b"x-www-form-urlencoded", b"json"),
        FORM.replace(b"urlencoded", b"urlencodedX"),
        FORM.replace(b"Content-Length: 9", b"Content-Length: -9"),
        FORM.replace(b"POST", b"PUT"),
    ):
        frames = Requests()
        first = frames.feed(stream, 1)
        assert first == [stream[: stream.index(b"\r\n\r\n") + 4]]


def test_the_longest_form_is_waited_for() -> None:
    head = FORM[: FORM.index(b"\r\n\r\n") + 4].replace(b": 9", f": {FORM_LIMIT}".encode())
    frames = Requests()
    assert frames.feed(head + b"a" * (FORM_LIMIT - 1), 64) == []
    assert frames.feed(b"b" + FORM, 64) == [head + b"a" * (FORM_LIMIT - 1) + b"b", FORM]
