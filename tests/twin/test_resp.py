"""Redis replies and commands: any bytes, cut in any way, give the same replies and the same errors."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import korvet_reference as reference
from korvet_fast.errors import CodecError
from twin.implementations import agree, plain
from twin.profile import examples
from twin.strategies import damaged

text = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8).map(str.encode)
scalars = st.one_of(
    st.builds(lambda kind, body: kind + body + b"\r\n", st.sampled_from([b"+", b"-"]), text),
    st.integers(-(1 << 64), 1 << 64).map(b":%d\r\n".__mod__),
    st.integers(-(1 << 80), 1 << 80).map(b"(%d\r\n".__mod__),
    st.floats().map(lambda number: f",{number}\r\n".encode()),
    st.binary(max_size=12).map(lambda body: b"$%d\r\n%b\r\n" % (len(body), body)),
    st.binary(max_size=12).map(lambda body: b"!%d\r\n%b\r\n" % (len(body), body)),
    st.binary(max_size=12).map(lambda body: b"=%d\r\ntxt:%b\r\n" % (len(body) + 4, body)),
    st.sampled_from(
        [b"_\r\n", b"#t\r\n", b"#f\r\n", b"$-1\r\n", b"*-1\r\n", b"*0\r\n", b"%0\r\n", b"|0\r\n", b",1.\r\n"]
    ),
)


def array_of(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    def write(kind: bytes, items: list[bytes]) -> bytes:
        pairs = kind in b"%|"
        kept = items[: len(items) // 2 * 2] if pairs else items
        return b"%b%d\r\n" % (kind, len(kept) // 2 if pairs else len(kept)) + b"".join(kept)

    return st.builds(write, st.sampled_from([b"*", b"~", b">", b"%", b"|"]), st.lists(inner, max_size=4))


streams = st.lists(st.recursive(scalars, array_of, max_leaves=8), max_size=4).map(b"".join)
noise = st.text("-+:$*%|,#(_=!~>0123tfinae.\r\n", max_size=40).map(str.encode)


def fed(data: bytes, step: int, limit: int) -> Any:
    """All replies of `data`, `step` bytes at a time; what is pending at the end; or the error that ends it, twice."""

    def call(impl: ModuleType) -> tuple[list[Any], list[int], str]:
        replies = impl.Replies(limit)
        found: list[Any] = []
        pending = []
        for at in range(0, len(data), step):
            try:
                found += replies.feed(data[at : at + step])
            except CodecError as error:
                with pytest.raises(CodecError, match=error.code):
                    replies.feed(b"")
                return found, pending, error.code
            pending.append(replies.pending)
        return found, pending, ""

    return call


@given(
    st.one_of(streams, damaged(streams), noise, st.binary(max_size=40)), st.integers(1, 30), st.sampled_from([20, 1000])
)
@examples(500)
def test_any_cut(data: bytes, step: int, limit: int) -> None:
    whole = agree(fed(data, len(data) + 1, limit))[1][1]
    for size in (1, step):
        cut = agree(fed(data, size, limit))[1][1]
        assert cut[2] == whole[2]
        if not whole[2]:
            assert cut[0] == whole[0]


def cut(data: bytes, step: int, limit: int, joined: list[int]) -> Any:
    """The raw groups of `data`, `step` bytes at a time, as `fed` gives parsed replies."""

    def call(impl: ModuleType) -> tuple[list[bytes], list[int], str]:
        replies = impl.Replies(limit, raw=True)
        for count in joined:
            replies.join(count)
        found: list[bytes] = []
        pending = []
        for at in range(0, len(data), step):
            try:
                found += replies.feed(data[at : at + step])
            except CodecError as error:
                with pytest.raises(CodecError, match=error.code):
                    replies.feed(b"")
                return found, pending, error.code
            pending.append(replies.pending)
        return found, pending, ""

    return call


@given(
    st.one_of(streams, damaged(streams), noise, st.binary(max_size=40)),
    st.integers(1, 30),
    st.sampled_from([20, 1000]),
    st.lists(st.integers(1, 3), max_size=2),
)
@examples(400)
def test_raw_replies(data: bytes, step: int, limit: int, joined: list[int]) -> None:
    parsed = agree(fed(data, step, limit))[1][1]
    raw = agree(cut(data, step, limit, []))[1][1]
    assert raw[1:] == parsed[1:]  # the same bytes wait, the same error ends it
    assert [agree(lambda impl, one=one: impl.parse_reply(one))[1] for one in raw[0][1]] == parsed[0][1]
    groups = agree(cut(data, step, limit, joined))[1][1]
    if not raw[2]:
        whole = b"".join(raw[0][1])
        assert b"".join(groups[0][1]) == whole[: len(whole) - groups[1][1][-1] + raw[1][1][-1]] if data else not whole
        counts = [len(agree(lambda impl, one=one: impl.parse_replies(one))[1][1]) for one in groups[0][1]]
        assert counts == [*joined, *[1] * len(counts)][: len(counts)]


@given(st.one_of(streams, damaged(streams), noise))
@examples(200)
def test_replies_in_one_piece(data: bytes) -> None:
    agree(lambda impl: impl.parse_reply(data))
    agree(lambda impl: impl.parse_replies(data))


def test_a_reply_in_a_thousand_pieces(impl: ModuleType) -> None:
    reply = b"*3\r\n:1\r\n$300000\r\n%b\r\n+OK\r\n" % bytes(300_000)
    replies = impl.Replies(1 << 20, raw=True)
    stream = memoryview(reply + reply + b":2\r\n")
    found = [one for at in range(0, len(stream), 601) for one in replies.feed(stream[at : at + 601])]
    assert found == [reply, reply, b":2\r\n"]


def test_what_cannot_be_joined(impl: ModuleType) -> None:
    for replies, count in ((impl.Replies(100, raw=True), 0), (impl.Replies(100), 1)):
        with pytest.raises(CodecError, match="BAD_VALUE"):
            replies.join(count)


def test_a_reply_that_no_memory_holds(impl: ModuleType) -> None:
    for data, code in (
        (b"*9223372036854775807\r\n", "OVERSIZE"),
        (b"*6000000000000000000\r\n", "TRUNCATED"),
        (b"$9223372036854775807\r\n", "TRUNCATED"),
    ):
        with pytest.raises(CodecError, match=code):
            impl.parse_reply(data)


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        (b"+OK\r\n", "OK"),
        (b"$2\r\n\r\n\r\n", b"\r\n"),
        (b"$-1\r\n", None),
        (b":-7\r\n", -7),
        (b"(123456789012345678901\r\n", 123456789012345678901),
        (b",1.5\r\n", 1.5),
        (b",inf\r\n", float("inf")),
        (b"#t\r\n", True),
        (b"*2\r\n:1\r\n*1\r\n_\r\n", [1, [None]]),
        (b"%1\r\n+a\r\n:1\r\n", ["a", 1]),
        (b"|1\r\n+ttl\r\n:3600\r\n:5\r\n", 5),
        (b"=7\r\ntxt:abc\r\n", b"abc"),
    ],
)
def test_each_kind_of_reply(impl: ModuleType, data: bytes, reply: object) -> None:
    assert plain(impl.Replies(100).feed(data)) == plain([reply])


def test_an_error_is_a_reply(impl: ModuleType) -> None:
    (found,) = impl.Replies(100).feed(b"-WRONGTYPE no\r\n")
    assert isinstance(found, impl.ReplyError)
    assert found.message == "WRONGTYPE no"
    assert found == impl.ReplyError("WRONGTYPE no")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"hello\r\n", "BAD_RESP"),
        (b"\r\n", "BAD_RESP"),
        (b"$3\r\nabcde", "BAD_RESP"),
        (b"$-2\r\n", "BAD_RESP"),
        (b":9223372036854775808\r\n", "BAD_RESP"),
        (b"*1\r\n" * 9, "BAD_RESP"),
        (b"(" + b"1" * 1025 + b"\r\n", "BAD_RESP"),
        (b"$2001\r\n", "OVERSIZE"),
        (b"*2000\r\n", "OVERSIZE"),
        (b"%9223372036854775807\r\n", "OVERSIZE"),
        (b"+" * 2001, "OVERSIZE"),
    ],
)
def test_what_is_no_reply(impl: ModuleType, data: bytes, code: str) -> None:
    with pytest.raises(CodecError) as caught:
        impl.Replies(2000).feed(data)
    assert caught.value.code == code


words = st.one_of(
    st.binary(max_size=20), st.text(max_size=8), st.integers(), st.builds(memoryview, st.binary(max_size=9))
)


@given(st.lists(st.lists(words, max_size=5), max_size=4))
@examples(100)
def test_commands(commands: list[list[Any]]) -> None:
    try:
        kind, data = agree(lambda impl: impl.encode_commands(commands))
    except UnicodeEncodeError:
        return
    assert kind == "value"
    if all(commands):
        expected = [
            [
                word if isinstance(word, bytes) else bytes(word) if isinstance(word, memoryview) else str(word).encode()
                for word in command
            ]
            for command in commands
        ]
        assert agree(fed(data, len(data) + 1, 1 << 20))[1][1][0] == plain(expected)


@given(st.lists(st.lists(st.one_of(words, st.binary(min_size=4095, max_size=4097)), max_size=5), max_size=4))
@examples(60)
def test_commands_in_parts(commands: list[list[Any]]) -> None:
    try:
        kind, parts = agree(lambda impl: impl.encode_command_parts(commands))
    except UnicodeEncodeError:
        return
    assert kind == "value"
    assert b"".join(part if isinstance(part, bytes) else part[1] for part in parts[1]) == reference.encode_commands(
        commands
    )


def test_large_words_are_parts_of_their_own(impl: ModuleType) -> None:
    large = bytearray(4096)
    parts = impl.encode_command_parts([["XADD", "log", "1-1", "batch", large], ["SET", bytes(4095), "x" * 5000]])
    assert parts[1] is large
    assert parts[3] == b"x" * 5000
    assert parts[4:] == [b"\r\n"]
