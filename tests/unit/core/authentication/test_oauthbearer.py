"""OAUTHBEARER's message: what clients send, what none should, and any bytes at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.authentication.oauthbearer import (
    LONGEST,
    ClientMessage,
    read_client_message,
    write_client_message,
)

TOKENS = st.text("abcXYZ019-_.", min_size=1)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("\t\r\n"), min_size=1)
NAMES = st.text("abcXYZ", min_size=1).filter(lambda name: name != "auth")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,\x01auth=Bearer a.b.c\x01\x01", ClientMessage("a.b.c", "")),
        (b"n,,\x01auth=bEARER   a.b.\x01\x01", ClientMessage("a.b.", "")),
        (b"n,a=ann,\x01auth=Bearer a\x01\x01", ClientMessage("a", "ann")),
        (b"n,a=a=2Cn=3Dn,\x01auth=Bearer a\x01\x01", ClientMessage("a", "a,n=n")),
        (b"n,a=a=3D2Cn,\x01auth=Bearer a\x01\x01", ClientMessage("a", "a=2Cn")),
        ("n,a=\u00e4nn,\x01auth=Bearer a\x01\x01".encode(), ClientMessage("a", "\u00e4nn")),
        (b"n,,\x01host=h\x01port=9093\x01auth=Bearer a\x01\x01", ClientMessage("a", "")),
        (b"n,,\x01auth=Bearer a\x01trace=\x01x=a=b c\t\r\n\x01\x01", ClientMessage("a", "")),
    ],
)
def test_messages(message: bytes, expected: ClientMessage) -> None:
    assert read_client_message(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"n,,\x01auth=Bearer a\x01\x01\x01",
        b"n,,auth=Bearer a\x01\x01",
        b"y,,\x01auth=Bearer a\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a\x01\x01",
        b"n,a=,\x01auth=Bearer a\x01\x01",
        b"n,a=a=nn,\x01auth=Bearer a\x01\x01",
        b"n,a=a\nb,\x01auth=Bearer a\x01\x01",
        b"n,a=\xff,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Basic a\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a+b/=\x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"n,,\x01Auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer a\x01x1=y\x01\x01",
        b"n,,\x01auth=Bearer a\x01x=\x00\x01\x01",
        b"n,,\x01auth=Bearer a\x01x=\xc3\xa4\x01\x01",
        b"n,,\x01auth=Bearer a\x01=y\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * LONGEST + b"\x01\x01",
        b"n,,\x01" + b"x=y\x01" * (LONGEST // 4),
    ],
)
def test_messages_that_are_none(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"message|Bearer|codec") as raised:
        read_client_message(message)
    assert "a+b" not in str(raised.value)


@given(TOKENS, st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_one_side_writes_the_other_reads(token: str, extensions: dict[str, str]) -> None:
    message = write_client_message(token, extensions)
    assert read_client_message(message) == ClientMessage(token, "")
    assert message.split(b"\x01")[2:-2] == [f"{key}={value}".encode() for key, value in extensions.items()]


@pytest.mark.parametrize("token", ["", "a b", "a\x01", "a\n", "\u00e4", "a="])
def test_tokens_that_cannot_be_sent(token: str) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        write_client_message(token)


@pytest.mark.parametrize(
    "extensions", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": ""}, {"a": "\x01"}, {"a": "\u00e4"}]
)
def test_extensions_that_cannot_be_sent(extensions: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="extension"):
        write_client_message("a", extensions)


PARTS = st.sampled_from(
    [
        b"n,,",
        b"n,a=ann,",
        b"y,",
        b"auth=",
        b"Bearer ",
        b"a.b.c",
        b"\x01",
        b"\x01\x01",
        b"x=y",
        b"=",
        b",",
        b" ",
        b"\xff",
    ]
)


@given(st.binary(max_size=200) | st.lists(PARTS, max_size=12).map(b"".join))
def test_any_bytes_are_a_message_or_an_error(message: bytes) -> None:
    try:
        found = read_client_message(message)
    except ValueError:
        return
    assert found.token
    assert found.token.encode() in message
    assert "\x01" not in found.token + found.authzid


@given(TOKENS, st.integers(0, 100), st.binary(min_size=1, max_size=1))
def test_a_byte_more_or_another_one_is_never_read_as_another_name(token: str, place: int, byte: bytes) -> None:
    good = write_client_message(token)
    place %= len(good)
    for damaged in (good[:place] + byte + good[place:], good[:place] + byte + good[place + 1 :]):
        try:
            found = read_client_message(damaged)
        except ValueError:
            continue
        assert found.authzid == ""
        assert abs(len(found.token) - len(token)) <= 1
