"""The client's side of SASL: beside the broker's, and before brokers that are not to be believed."""

import asyncio
from base64 import b64encode
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.sasl import SASL_MECHANISMS, SaslLogin, show_token
from korvet_fast.core.authentication.sasl_server import SERVERS, AuthenticationFailed
from korvet_fast.core.authentication.scram import SCRAM_SHA_256
from sasl_world import Keys, add_user, make_users

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)


async def offload(work: Callable[..., bytes], *arguments: object) -> bytes:
    return work(*arguments)


async def log_in(login: SaslLogin, known: str) -> str | None:
    """The user whom the broker lets in, whose password is `known`."""
    users = make_users(Keys())
    await add_user(users, login.user, known)
    server = SERVERS[login.mechanism](users, offload)  # type: ignore[arg-type]
    exchange = login.exchange()
    token = next(exchange)
    while True:
        answer = await server.evaluate(token)
        try:
            token = exchange.send(answer)
        except StopIteration:
            return server.user


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(SASL_MECHANISMS), TEXT, TEXT, TEXT)
def test_whoever_has_the_password_is_let_in(mechanism: str, user: str, password: str, other: str) -> None:
    assert asyncio.run(log_in(SaslLogin(mechanism, user, password), password)) == user
    if other != password:
        with pytest.raises(AuthenticationFailed):
            asyncio.run(log_in(SaslLogin(mechanism, user, other), password))


def test_a_login_in_a_log_has_no_password() -> None:
    assert repr(SaslLogin("PLAIN", "ann", "a pear")) == "SaslLogin('PLAIN', 'ann')"


def challenge(nonce: str, iterations: str = "4096", salt: bytes = b"salt") -> bytes:
    return f"r={nonce},s={b64encode(salt).decode()},i={iterations}".encode()


def own_nonce(first: bytes) -> str:
    return first.decode().rpartition("r=")[2]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("{}", "it has another nonce"),
        ("x{}", "it has another nonce"),
        ("other", "it has another nonce"),
    ],
)
def test_a_challenge_with_another_nonce(form: str, words: str) -> None:
    exchange = SaslLogin(SCRAM_SHA_256.name, "ann", "pear").exchange()
    nonce = own_nonce(next(exchange))
    with pytest.raises(ClientError, match=words):
        exchange.send(challenge(form.format(nonce)))


@pytest.mark.parametrize("iterations", ["1", "4095", "1000001", "999999999"])
def test_a_broker_that_wants_too_little_or_too_much_work(iterations: str) -> None:
    exchange = SaslLogin(SCRAM_SHA_256.name, "ann", "pear").exchange()
    nonce = own_nonce(next(exchange))
    with pytest.raises(ClientError, match=f"asks for {iterations} iterations"):
        exchange.send(challenge(nonce + "server", iterations))


@pytest.mark.parametrize("answer", [b"", b"e=other-error", b"r=,s=,i=", b"\xff", b"r=a,s=YQ==,i=0", b"x" * 5000])
def test_a_challenge_that_is_none(answer: bytes) -> None:
    exchange = SaslLogin(SCRAM_SHA_256.name, "ann", "pear").exchange()
    next(exchange)
    with pytest.raises(ClientError, match="the broker's challenge cannot be used"):
        exchange.send(answer)


@pytest.mark.parametrize("answer", [b"", b"v=", b"v=AAAA", b"e=invalid-proof", b"v=" + b64encode(bytes(32))])
def test_a_broker_that_does_not_know_the_password(answer: bytes) -> None:
    exchange = SaslLogin(SCRAM_SHA_256.name, "ann", "pear").exchange()
    nonce = own_nonce(next(exchange))
    exchange.send(challenge(nonce + "server"))
    with pytest.raises(ClientError, match=r"does not know this password|last answer cannot be used"):
        exchange.send(answer)


def test_a_token_is_shown_and_an_error_is_answered_with_a_byte() -> None:
    good = show_token("a.b.c")
    assert next(good) == b"n,,\x01auth=Bearer a.b.c\x01\x01"
    with pytest.raises(StopIteration):
        good.send(b"")
    refused = show_token("a.b.c")
    next(refused)
    assert refused.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(ClientError, match="let a client in whose token it had refused"):
        refused.send(b"")


@pytest.mark.parametrize("token", ["", "a b", "a\x01auth=Bearer b", "\u00e4"])
def test_what_is_no_token_is_not_sent(token: str) -> None:
    with pytest.raises(ClientError, match="the token cannot be sent: a token has letters, digits"):
        next(show_token(token))
