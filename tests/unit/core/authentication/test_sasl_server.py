"""The broker's side of SCRAM and PLAIN: what a good client never sends, and every order of what it does send."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.core.authentication.sasl_server import SERVERS, AuthenticationFailed, SaslServer, ScramServer
from korvet_fast.core.authentication.scram import MECHANISMS, SCRAM_SHA_256
from sasl_world import SHA_256, SHA_512, Keys, ScramPeer, add_user, make_users, plain_token


async def offload(work: Callable[..., bytes], *arguments: object) -> bytes:
    return work(*arguments)


USERS = make_users(Keys())
asyncio.run(add_user(USERS, "ann", "pear"))


def make(mechanism: str) -> SaslServer:
    return SERVERS[mechanism](USERS, offload)  # type: ignore[arg-type]


def evaluate(server: SaslServer, token: bytes) -> bytes:
    return asyncio.run(server.evaluate(token))


def refused(work: Coroutine[Any, Any, bytes]) -> str:
    with pytest.raises(AuthenticationFailed) as raised:
        asyncio.run(work)
    return str(raised.value)


class FixedNonce:
    """What `secrets` gives in the example of RFC 7677."""

    @staticmethod
    def token_urlsafe(_: int) -> str:
        return "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    from base64 import b64decode

    from korvet_fast.core.authentication import sasl_server, scram

    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = scram.salt_password(SCRAM_SHA_256, b"pencil", salt, 4096)
    users = make_users(Keys())
    credential = scram.make_credential(SCRAM_SHA_256, salted, salt, 4096)
    asyncio.run(users.alter("user", {SCRAM_SHA_256: credential}, "User:root"))
    monkeypatch.setattr(sasl_server, "secrets", FixedNonce)
    server = ScramServer(SCRAM_SHA_256, users, offload)  # type: ignore[arg-type]
    challenge = evaluate(server, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert challenge.decode() == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert evaluate(server, final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.user == "user"


def test_a_nonce_is_never_used_twice_so_an_exchange_cannot_be_played_again() -> None:
    """CVE-2024-56128."""
    first, second = make(SHA_256), make(SHA_256)
    peer = ScramPeer(SHA_256, "ann", "pear")
    recorded = peer.final(evaluate(first, peer.first()))
    assert evaluate(first, recorded)
    evaluate(second, peer.first())
    assert refused(second.evaluate(recorded)) == "SCRAM-SHA-256: another nonce than that of this exchange"
    assert second.user is None


@pytest.mark.parametrize("change", ["", "client-nonce", "{}x", "x{}"])
def test_a_nonce_that_is_another_one_shorter_or_longer(change: str) -> None:
    server, peer = make(SHA_512), ScramPeer(SHA_512, "ann", "pear")
    challenge = evaluate(server, peer.first())
    nonce = challenge.decode().split(",")[0].removeprefix("r=")
    wrong = change.format(nonce) if change else nonce[:-1]
    assert "another nonce" in refused(server.evaluate(peer.final(challenge, nonce=wrong)))
    assert "after the last one" in refused(server.evaluate(peer.final(challenge)))
    assert server.user is None


@pytest.mark.parametrize("binding", ["y,,", "n,a=ann,", "p=tls-unique,,", "n", "n,,x"])
def test_another_channel_binding(binding: str) -> None:
    server, peer = make(SHA_256), ScramPeer(SHA_256, "ann", "pear")
    challenge = evaluate(server, peer.first())
    assert "another channel binding" in refused(server.evaluate(peer.final(challenge, binding=binding)))


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=ann,r=abc",
        b"p=tls-unique,,n=ann,r=abc",
        b"n,,m=must,n=ann,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=ann,r=",
        b"n,,n=a=nn,r=abc",
        b"n,,n=a=2cb,r=abc",
        b"n,,n=ann,r=a b",
        b"n,,n=ann,r=abc,",
        b"n,,n=ann,r=abc,x",
        b"n,,n=ann,r=abc\0",
        b"n,,n=\xff,r=abc",
        b"n,a=bob,n=ann,r=abc",
        b"n,a=,n=ann,r=abc",
        b"n,,n=ann,r=" + b"a" * 4096,
        b"n,,n=ann",
        b"c=biws,r=abc,p=abc",
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    server = make(SHA_256)
    refused(server.evaluate(first))
    refused(server.evaluate(ScramPeer(SHA_256, "ann", "pear").first()))  # there is no second try
    assert server.user is None


def test_the_same_name_to_act_under_and_extensions_that_may_be_passed_over() -> None:
    server, peer = make(SHA_256), ScramPeer(SHA_256, "ann", "pear", header="n,a=ann,")
    peer.bare += ",tokenauth=true,x=y"
    challenge = evaluate(server, peer.first())
    assert peer.believes(evaluate(server, peer.final(challenge, more=",z=1")))
    assert server.user == "ann"


@pytest.mark.parametrize("end", ["", ",p=", ",p=!!!!", ",p=abc", ",p=AAAA", ",v=AAAA"])
def test_final_messages_that_are_refused(end: str) -> None:
    server, peer = make(SHA_256), ScramPeer(SHA_256, "ann", "pear")
    bare = peer.final(evaluate(server, peer.first())).decode().partition(",p=")[0]
    refused(server.evaluate((bare + end).encode()))
    assert server.user is None


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_who_is_not_there_takes_the_same_steps(mechanism: str) -> None:
    keys = Keys()
    users = make_users(keys)
    asyncio.run(add_user(users, "ann", "pear"))
    seen = []
    for user in ("ann", "bob"):
        keys.loads.clear()
        server = SERVERS[mechanism](users, offload)  # type: ignore[arg-type]
        peer = ScramPeer(mechanism, user, "wrong")
        challenge = evaluate(server, peer.first())
        reason = refused(server.evaluate(peer.final(challenge))).replace(user, "NAME")
        asyncio.run(users.find(user, MECHANISMS[mechanism]))
        seen.append((len(keys.loads[-1:]), len(challenge), challenge.decode().split(",")[2], reason))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"ann\0pear",
        b"\0ann\0pear\0",
        b"\0\0pear",
        b"\0ann\0",
        b"bob\0ann\0pear",
        b"\0ann\0apple",
        b"\0bob\0pear",
        b"\0\xff\0pear",
        b"\0ann\0" + bytes(5000),
    ],
)
def test_plain_tokens_that_are_refused(token: bytes) -> None:
    server = make("PLAIN")
    refused(server.evaluate(token))
    assert server.user is None


@pytest.mark.parametrize("authorized", ["", "ann"])
def test_plain(authorized: str) -> None:
    server = make("PLAIN")
    assert evaluate(server, plain_token("ann", "pear", authorized)) == b""
    assert server.user == "ann"


def test_plain_takes_the_strongest_mechanism_that_a_user_has() -> None:
    for mechanism in MECHANISMS:
        users = make_users(Keys())
        asyncio.run(add_user(users, "ann", "pear", mechanism))
        server = SERVERS["PLAIN"](users, offload)  # type: ignore[arg-type]
        assert evaluate(server, plain_token("ann", "pear")) == b""


def _tokens(peer: ScramPeer, challenge: bytes) -> dict[str, bytes]:
    known = challenge or b"r=client-nonceserver,s=AAAA,i=4096"
    return {
        "first": peer.first(),
        "final": peer.final(known),
        "forged": ScramPeer(SHA_256, "ann", "apple").final(known),
        "empty": b"",
        "noise": b"\xff\0,,=",
    }


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["first", "final", "forged", "empty", "noise"]), max_size=5))
def test_only_the_two_right_tokens_in_their_order_let_somebody_in(order: list[str]) -> None:
    server, peer, challenge, ended = make(SHA_256), ScramPeer(SHA_256, "ann", "pear"), b"", False
    for position, kind in enumerate(order):
        expected = not ended and (kind == "first" if position == 0 else position == 1 and kind == "final")
        token = _tokens(peer, challenge)[kind]
        if expected:
            answer = evaluate(server, token)
            challenge, ended = (answer, False) if position == 0 else (challenge, True)
        else:
            refused(server.evaluate(token))
            ended = True
    assert (server.user == "ann") == (order[:2] == ["first", "final"])


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200), st.sampled_from(sorted(SERVERS)))
def test_any_bytes_are_refused_and_nothing_else_happens(token: bytes, mechanism: str) -> None:
    server = make(mechanism)
    with suppress(AuthenticationFailed):
        evaluate(server, token)
    assert server.user is None
