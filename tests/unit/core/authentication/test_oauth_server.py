"""The broker's side of OAUTHBEARER: one message that is good, or an error in JSON and then the end (RFC 7628, 3.2)."""

import asyncio
from collections.abc import Callable

import pytest

from korvet_fast.core.authentication.mechanisms import make_server
from korvet_fast.core.authentication.oauth_server import BearerToken, OAuthBearerServer, TokenRefused
from korvet_fast.core.authentication.sasl_server import AuthenticationFailed, CannotAuthenticate


class Tokens:
    """Believes a token that is `good`."""

    async def verify(self, token: str, offload: object) -> BearerToken:
        if token == "later":
            raise CannotAuthenticate("no keys")
        if token != "good":
            raise TokenRefused("it is not good")
        return BearerToken("ann", 60.0)


async def offload(work: Callable[..., bytes], *arguments: object) -> bytes:
    return work(*arguments)


def evaluate(server: OAuthBearerServer, message: bytes) -> bytes:
    return asyncio.run(server.evaluate(message))


@pytest.fixture
def server() -> OAuthBearerServer:
    return OAuthBearerServer(Tokens(), offload)  # type: ignore[arg-type]


@pytest.mark.parametrize("head", [b"n,,", b"n,a=ann,"])
def test_a_good_token(server: OAuthBearerServer, head: bytes) -> None:
    assert evaluate(server, head + b"\x01auth=Bearer good\x01\x01") == b""
    assert (server.user, server.lifetime) == ("ann", 60.0)


@pytest.mark.parametrize("second", [b"\x01", b"", b"n,,\x01auth=Bearer good\x01\x01"])
def test_a_refused_token_is_told_in_json_and_then_the_login_has_failed(
    server: OAuthBearerServer, second: bytes
) -> None:
    assert evaluate(server, b"n,,\x01auth=Bearer bad\x01\x01") == b'{"status":"invalid_token"}'
    assert server.user is None
    for _ in range(2):
        with pytest.raises(AuthenticationFailed, match="OAUTHBEARER: it is not good"):
            evaluate(server, second)
    assert server.user is None


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "no message of the form"),
        (b"n,,\x01\x01", "0 tokens"),
        (b"\x01", "no message of the form"),
        (b"n,a=bob,\x01auth=Bearer good\x01\x01", "ann wants to act as bob"),
        (b"n,a=\xc2\x9bx,\x01auth=Bearer good\x01\x01", "ann wants to act as"),
    ],
)
def test_other_messages_fail_at_once_and_for_good(server: OAuthBearerServer, message: bytes, why: str) -> None:
    with pytest.raises(AuthenticationFailed, match=why) as raised:
        evaluate(server, message)
    assert "\x9b" not in str(raised.value)
    with pytest.raises(AuthenticationFailed, match="a second message"):
        evaluate(server, b"n,,\x01auth=Bearer good\x01\x01")
    assert server.user is None


def test_without_keys_nobody_is_let_in_or_refused_for_good(server: OAuthBearerServer) -> None:
    with pytest.raises(CannotAuthenticate):
        evaluate(server, b"n,,\x01auth=Bearer later\x01\x01")
    with pytest.raises(CannotAuthenticate, match="which tokens"):
        make_server("OAUTHBEARER", None, None, offload)  # type: ignore[arg-type]
