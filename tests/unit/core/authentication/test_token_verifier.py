"""Which tokens are believed: every way in which one can be wrong, and the names that come out of good ones."""

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.authentication.jwks import RefreshTimes, SigningKeys
from korvet_fast.core.authentication.oauth_server import BearerToken, TokenRefused
from korvet_fast.core.authentication.token_verifier import ClaimRules, SignedTokens, UnsecuredTokens
from korvet_fast.rate_limited_log import RateLimitedLog
from oauth_world import AUDIENCE, ISSUER, RSA, PrivateKey, encode, make_claims, make_jwk, unsigned

RULES = ClaimRules(issuer=ISSUER, audiences=["billing", AUDIENCE])
P256, P384, P521 = (ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1))
ED25519 = ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, PrivateKey] = {"rsa": RSA, "256": P256, "384": P384, "521": P521, "ed": ED25519}
STRANGER = rsa.generate_private_key(65537, 2048)
ALGORITHMS = {
    "RS256": "rsa",
    "RS384": "rsa",
    "RS512": "rsa",
    "PS256": "rsa",
    "PS384": "rsa",
    "PS512": "rsa",
    "ES256": "256",
    "ES384": "384",
    "ES512": "521",
    "EdDSA": "ed",
}
LOG = RateLimitedLog(time.monotonic)


async def offload(work: Callable[..., Any], *arguments: object) -> Any:
    return work(*arguments)


def verify(token: str, rules: ClaimRules = RULES, rows: list[dict[str, Any]] | None = None) -> BearerToken:
    """Judge a token by the keys of `KEYS`, or by these rows of a key set."""
    rows = [make_jwk(key, key_id) for key_id, key in KEYS.items()] if rows is None else rows

    async def judge() -> BearerToken:
        async def fetch() -> bytes:
            return json.dumps({"keys": rows}).encode()

        start = asyncio.get_running_loop().create_task
        keys = SigningKeys(fetch, RefreshTimes(3600, 0.1, 10), time.monotonic, start, LOG)
        return await SignedTokens(keys, rules, LOG).verify(token, offload)  # type: ignore[arg-type]

    return asyncio.run(judge())


def refused(token: str, rules: ClaimRules = RULES, rows: list[dict[str, Any]] | None = None) -> str:
    with pytest.raises(TokenRefused) as raised:
        verify(token, rules, rows)
    return str(raised.value)


def sign(claims: dict[str, Any], algorithm: str = "RS256", key_id: str | None = None, **header: Any) -> str:
    name = ALGORITHMS[algorithm]
    body = json.dumps(claims).encode()
    return jwt.api_jws.encode(body, KEYS[name], algorithm, {"kid": key_id or name} | header)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_good_tokens_of_every_algorithm(algorithm: str) -> None:
    found = verify(sign(make_claims("ann"), algorithm))
    assert found.subject == "ann"
    assert 320 < found.lifetime <= 330  # 300 and the clocks' difference


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_changed_token_is_refused(algorithm: str) -> None:
    head, body, signature = sign(make_claims("ann"), algorithm).split(".")
    other = encode(make_claims("root"))
    assert "Signature" in refused(f"{head}.{other}.{signature}")
    assert refused(f"{head}.{body}.")
    assert refused(f"{head}.{body}.{'A' * len(signature)}")


def test_a_signature_by_another_key_under_a_known_id() -> None:
    token = jwt.encode(make_claims(), STRANGER, "RS256", {"kid": "rsa"})
    assert "Signature" in refused(token)


def test_an_unknown_key() -> None:
    assert "no key at sasl.oauthbearer.jwks.endpoint.url fits" in refused(
        jwt.encode(make_claims(), STRANGER, "RS256", {"kid": "other"})
    )


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "nOnE", "", None, 1, "HS256", "HS512", "RS1", "ES256K", ["RS256"]]
)
def test_algorithms_that_are_not_taken(algorithm: Any) -> None:
    token = f"{encode({'alg': algorithm, 'kid': 'rsa'})}.{encode(make_claims())}."
    assert "its algorithm is none of ES256" in refused(token + "AAAA")
    assert "its algorithm is none of ES256" in refused(token)


def test_a_public_key_is_not_taken_for_a_secret() -> None:
    """The published key as the secret of an HMAC: the classic confusion."""
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{encode({'alg': 'HS256', 'kid': 'rsa'})}.{encode(make_claims('root'))}"
    token = f"{signed}.{encode(hmac.digest(public, signed.encode(), hashlib.sha256))}"
    assert "its algorithm is none of" in refused(token)


@pytest.mark.parametrize("more", ["jwk", "jku", "x5u", "x5c"])
def test_a_key_that_the_token_brings_along_is_not_looked_at(more: str) -> None:
    brought = {
        "jwk": make_jwk(STRANGER, "rsa"),
        "jku": "https://127.0.0.1:1/keys",
        "x5u": "https://127.0.0.1:1/cert",
        "x5c": ["MIIB"],
    }
    token = jwt.encode(make_claims("root"), STRANGER, "RS256", {"kid": "rsa", more: brought[more]})
    assert "Signature" in refused(token)
    assert verify(sign(make_claims(), **{more: brought[more]})).subject == "ann"


def test_extensions_that_have_to_be_understood() -> None:
    assert "crit" in refused(sign(make_claims(), crit=["exp"], exp=1))
    assert "crit" in refused(sign(make_claims(), crit=[]))


@pytest.mark.parametrize(("algorithm", "key"), [("RS256", "256"), ("ES256", "rsa"), ("ES256", "384"), ("EdDSA", "256")])
def test_a_key_is_used_with_its_own_algorithms_only(algorithm: str, key: str) -> None:
    assert "no key" in refused(sign(make_claims(), algorithm, key))


def test_a_key_that_names_its_algorithm_is_used_with_no_other() -> None:
    rows = [make_jwk(RSA, "rsa", alg="PS256", use="sig")]
    assert verify(sign(make_claims(), "PS256"), rows=rows).subject == "ann"
    assert "no key" in refused(sign(make_claims(), "RS256"), rows=rows)


def test_a_token_without_a_key_id_fits_the_only_key_there_is() -> None:
    token = jwt.encode(make_claims(), RSA, "RS256")
    assert verify(token, rows=[make_jwk(RSA, "rsa"), make_jwk(P256, "ec")]).subject == "ann"
    assert verify(token, rows=[make_jwk(RSA, None)]).subject == "ann"
    assert "no key" in refused(token, rows=[make_jwk(RSA, "rsa"), make_jwk(STRANGER, "other")])
    assert "no key" in refused(sign(make_claims()), rows=[make_jwk(RSA, None)])  # it names one, and that is not there


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"exp": None}, "exp"),
        ({"iat": None}, "iat"),
        ({"exp": timedelta(seconds=-31)}, "expired"),
        ({"exp": 0}, "expired"),
        ({"exp": -1e308}, "expired"),
        ({"exp": "soon"}, "exp"),
        ({"exp": "9999999999"}, "exp"),
        ({"exp": [9999999999]}, "int"),
        ({"exp": {}}, "int"),
        ({"exp": float("inf")}, "exp"),
        ({"exp": float("nan")}, "exp"),
        ({"iat": timedelta(seconds=900)}, "iat"),
        ({"iat": []}, "int"),
        ({"nbf": timedelta(seconds=900)}, "nbf"),
        ({"nbf": "later"}, "nbf"),
        ({"iss": None}, "iss"),
        ({"iss": "https://login.test"}, "issuer"),
        ({"iss": [ISSUER]}, "iss"),
        ({"aud": None}, "aud"),
        ({"aud": []}, "aud"),
        ({"aud": "other"}, "udience"),
        ({"aud": ["other", "kafka2"]}, "udience"),
        ({"aud": {"kafka": 1}}, "udience|claim"),
        ({"aud": [1]}, "udience|claim"),
        ({"sub": None}, "its claim sub"),
        ({"sub": ""}, "its claim sub"),
        ({"sub": " "}, "its claim sub"),
        ({"sub": "x" * 1025}, "its claim sub"),
        ({"sub": 7}, "ubject|its claim sub"),
        ({"sub": ["ann"]}, "ubject|its claim sub"),
        ({"scope": 7}, "its claim scope"),
        ({"scope": ["read", 7]}, "its claim scope"),
        ({"scope": {"read": 1}}, "its claim scope"),
    ],
    ids=str,
)
def test_claims_that_are_refused(changes: dict[str, Any], why: str) -> None:
    token = sign(make_claims(**changes))
    assert re.search(why, refused(token))


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": timedelta(seconds=0.5), "iat": timedelta(seconds=10)},
        {"aud": ["other", AUDIENCE]},
        {"aud": "billing"},
        {"scope": None},
        {"scope": []},
        {"scope": ["read", "write"]},
        {"nbf": timedelta(seconds=0)},
    ],
    ids=str,
)
def test_claims_that_are_taken(changes: dict[str, Any]) -> None:
    assert verify(sign(make_claims(**changes)))[0] == "ann"


def test_clocks_may_differ_so_much() -> None:
    late = sign(make_claims(exp=timedelta(seconds=-100)))
    assert 0 < verify(late, RULES._replace(skew=300)).lifetime <= 200
    assert "expired" in refused(late, RULES._replace(skew=60))
    assert "expired" in refused(sign(make_claims(exp=timedelta(seconds=-1))), RULES._replace(skew=0))


def test_a_token_for_ever_is_good_for_a_time_that_can_be_told() -> None:
    assert verify(sign(make_claims(exp=1e300))).lifetime == 1e9


def test_without_an_expected_audience_a_token_for_others_is_refused() -> None:
    rules = ClaimRules()
    assert "udience" in refused(sign(make_claims()), rules)
    assert verify(sign(make_claims(aud=None, iss=None)), rules).subject == "ann"


def test_names_may_be_in_other_claims() -> None:
    rules = RULES._replace(subject="azp", scope="scp")
    assert verify(sign(make_claims(azp="shop", scope=7)), rules).subject == "shop"
    assert "its claim azp" in refused(sign(make_claims()), rules)
    assert "its claim scp" in refused(sign(make_claims(azp="shop", scp=7)), rules)


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b.c", "a.b", "....", "A" * 60_000, f"{encode(b'[1]')}..x", f"{encode(b'{')}.e30.x", "e30.e30.x"],
)
def test_what_is_no_token(token: str) -> None:
    assert refused(token)


def test_brackets_without_end_are_no_token() -> None:
    deep = encode(b"[" * 40_000)
    assert refused(f"{deep}.{encode(make_claims())}.x")
    head = encode({"alg": "RS256", "kid": "rsa"})
    signed = f"{head}.{deep}"
    signature = sign(make_claims()).rpartition(".")[2]
    assert "Signature" in refused(f"{signed}.{signature}")
    body = jwt.api_jws.encode(b"[" * 40_000, RSA, "RS256", {"kid": "rsa"})
    assert refused(body)
    assert refused(jwt.api_jws.encode(b'"text"', RSA, "RS256", {"kid": "rsa"}))
    assert refused(jwt.api_jws.encode(b'{"exp": ' + b"1" * 10_000 + b"}", RSA, "RS256", {"kid": "rsa"}))


@pytest.mark.parametrize("key_id", [7, None, ["rsa"], {}, True])
def test_a_key_id_that_is_no_text(key_id: Any) -> None:
    head = encode({"alg": "RS256", "kid": key_id})
    assert refused(f"{head}.{encode(make_claims())}.x")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CLAIMS = st.dictionaries(st.sampled_from(["sub", "iss", "aud", "iat", "exp", "nbf", "scope", "jti", "x"]), JSON)


@given(CLAIMS)
def test_any_claims_that_the_provider_signs_are_a_name_or_refused(changes: dict[str, Any]) -> None:
    body = json.dumps(make_claims() | changes).encode()
    token = jwt.api_jws.encode(body, RSA, "RS256", {"kid": "rsa"})
    try:
        found = verify(token, rows=[make_jwk(RSA, "rsa")])
    except TokenRefused:
        return
    assert isinstance(found.subject, str)
    assert found.subject.strip()
    assert -1 < found.lifetime <= 1e9


@given(CLAIMS, st.binary(max_size=64), st.booleans())
def test_any_header_and_any_signature_that_nobody_made_are_refused(
    header: dict[str, Any], signature: bytes, plausible: bool
) -> None:
    header = header | ({"alg": "RS256", "kid": "rsa"} if plausible else {})
    assert refused(f"{encode(json.dumps(header).encode())}.{encode(make_claims())}.{encode(signature)}")


def judge_unsecured(token: str, rules: ClaimRules = RULES) -> BearerToken:
    return asyncio.run(UnsecuredTokens(rules).verify(token, offload))  # type: ignore[arg-type]


def test_unsecured_tokens_are_believed_where_that_is_asked_for_and_nothing_else_is() -> None:
    assert judge_unsecured(unsigned(make_claims("anybody"))).subject == "anybody"
    for token in (
        sign(make_claims()),
        unsigned(make_claims()) + "x",
        unsigned(make_claims(), alg="RS256"),
        unsigned(make_claims(exp=1)),
        unsigned(make_claims(exp=None)),
        unsigned(make_claims(aud="other")),
        unsigned(make_claims(iss="other")),
        unsigned(make_claims(sub=None)),
        unsigned(make_claims(), kid=7),
        "..",
    ):
        with pytest.raises(TokenRefused):
            judge_unsecured(token)


def test_the_reason_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def judge() -> None:
        keys = SigningKeys(None, RefreshTimes(1, 1, 1), time.monotonic, None, LOG)  # type: ignore[arg-type]
        log = RateLimitedLog(time.monotonic)
        with pytest.raises(TokenRefused):
            await SignedTokens(keys, RULES, log).verify("a.b.c", offload)  # type: ignore[arg-type]

    asyncio.run(judge())
    assert "a token of OAUTHBEARER is refused: " in caplog.text
