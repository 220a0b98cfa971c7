"""The provider's keys: which of a set are used, when they are fetched, and what holds while they cannot be."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import HMACAlgorithm, RSAAlgorithm

from korvet_fast.core.authentication.jwks import MOST_KEYS, RefreshTimes, SigningKeys, read_key_set
from korvet_fast.core.authentication.oauth_server import TokenRefused
from korvet_fast.core.authentication.sasl_server import CannotAuthenticate
from korvet_fast.rate_limited_log import RateLimitedLog
from oauth_world import RSA, make_jwk

P256 = ec.generate_private_key(ec.SECP256R1())
TIMES = RefreshTimes(refresh=3600, backoff=0.1, most=10)
DAY = 86_400


def pack(*rows: Any) -> bytes:
    return json.dumps({"keys": rows}).encode()


def key_ids(data: bytes) -> list[str | None]:
    return [each.key_id for each in read_key_set(data)]


def test_the_keys_of_a_set_that_are_of_use() -> None:
    short = rsa.generate_private_key(65537, 1024)
    private = json.loads(RSAAlgorithm.to_jwk(RSA)) | {"kid": "private"}
    rows = [
        make_jwk(RSA, "rsa", use="sig", alg="RS256"),
        make_jwk(P256, "ec"),
        make_jwk(ed25519.Ed25519PrivateKey.generate(), "ed"),
        make_jwk(ed448.Ed448PrivateKey.generate(), "ed448", alg="EdDSA"),
        make_jwk(RSA, None),
        # none of these
        make_jwk(RSA, "encrypts", use="enc"),
        make_jwk(RSA, "oaep", alg="RSA-OAEP"),
        make_jwk(RSA, "hmac", alg="HS256"),
        make_jwk(RSA, "none", alg="none"),
        make_jwk(P256, "crossed", alg="RS256"),
        make_jwk(short, "short"),
        make_jwk(ec.generate_private_key(ec.SECP256K1()), "bitcoin"),
        json.loads(HMACAlgorithm.to_jwk(b"secret" * 6)) | {"kid": "secret"},
        private,
        make_jwk(P256, "point", x="AAAA"),
        make_jwk(RSA, "empty", n="", e=""),
        make_jwk(RSA, "odd", kty=["RSA"]),
        make_jwk(RSA, "nested", crv={"a": 1}),
        make_jwk(RSA, None, kid=7),
        {"kid": "nothing"},
        "text",
        None,
    ]
    assert key_ids(pack(*rows)) == ["rsa", "ec", "ed", "ed448", None]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"\xff",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [1]}',
        b'{"keys": ' + b"[" * 100_000,
        pack(*[make_jwk(P256, str(number)) for number in range(MOST_KEYS + 1)]),
    ],
    ids=range(10),
)
def test_what_is_no_set_of_keys(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_key_set(data)


ROW = make_jwk(P256, "ec")


@given(
    st.dictionaries(
        st.sampled_from([*ROW, "alg", "use", "d", "n"]), st.none() | st.text() | st.integers() | st.lists(st.text())
    )
)
def test_a_damaged_key_is_passed_over(changes: dict[str, Any]) -> None:
    for found in read_key_set(pack(ROW | changes, ROW)):
        assert found.algorithms == {"ES256"}
        assert isinstance(found.key, ec.EllipticCurvePublicKey)


class Scene:
    """Keys whose provider does as it is told, and a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.fetches: list[float] = []
        self.answer: bytes | Exception = pack(ROW)
        self.gate = asyncio.Event()
        self.gate.set()
        start = asyncio.get_running_loop().create_task
        self.keys = SigningKeys(self.fetch, TIMES, lambda: self.now, start, RateLimitedLog(lambda: self.now))

    async def fetch(self) -> bytes:
        self.fetches.append(self.now)
        answer = self.answer
        await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def find(self, key_id: str | None = "ec") -> bool | None:
        """Whether there is such a key; None: nobody knows."""
        try:
            await self.keys.find(key_id, "ES256")
        except TokenRefused:
            return False
        except CannotAuthenticate:
            return None
        return True

    async def settle(self) -> None:
        """Until no fetch is under way."""
        while self.keys._fetching is not None:
            await asyncio.wait([self.keys._fetching])


def run(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await scenario(Scene())

    asyncio.run(limited())


def test_one_fetch_for_all_who_wait_and_none_while_the_keys_are_fresh() -> None:
    async def scenario(scene: Scene) -> None:
        assert await asyncio.gather(*(scene.find() for _ in range(50))) == [True] * 50
        scene.now += TIMES.refresh - 1
        assert await scene.find()
        assert len(scene.fetches) == 1

    run(scenario)


def test_old_keys_are_used_while_new_ones_are_fetched() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.find()
        scene.now += TIMES.refresh
        scene.gate.clear()
        assert await scene.find()
        assert await scene.find()
        scene.answer = pack(make_jwk(P256, "new"))
        scene.gate.set()
        await scene.settle()
        assert len(scene.fetches) == 2

    run(scenario)


def test_a_flood_of_unknown_keys_asks_the_provider_once_in_ten_seconds() -> None:
    async def scenario(scene: Scene) -> None:
        assert await scene.find()
        for step in range(400):
            scene.now += 0.25
            found = await asyncio.gather(*(scene.find(f"unknown-{step}-{number}") for number in range(5)))
            assert found == [False if scene.fetches[-1] == scene.now else None] * 5
        assert len(scene.fetches) == 1 + 100 // 10

    run(scenario)


def test_a_new_key_is_found_at_once_and_a_former_one_is_forgotten() -> None:
    async def scenario(scene: Scene) -> None:
        assert await scene.find()
        scene.now += 60
        scene.answer = pack(make_jwk(P256, "new"))
        assert await scene.find("new")
        scene.now += 60
        assert await scene.find("ec") is False
        assert len(scene.fetches) == 3

    run(scenario)


@pytest.mark.parametrize("unknown", [True, False])
def test_who_has_a_new_key_may_try_again_while_it_cannot_be_fetched(unknown: bool) -> None:
    """The provider is away, or was asked a moment ago, as a stranger named a key that is not there."""

    async def scenario(scene: Scene) -> None:
        assert await scene.find()
        scene.now += 60
        if unknown:
            assert await scene.find("unknown") is False
        else:
            scene.answer = OSError("away")
        assert await scene.find("new") is None
        scene.answer = pack(make_jwk(P256, "new"))
        assert await scene.find("new") is None  # not asked again at once
        scene.now += 10
        assert await scene.find("new")

    run(scenario)


@pytest.mark.parametrize("failure", [OSError("away"), b"<html>", b"{}"])
def test_without_keys_nobody_is_let_in_and_the_provider_is_asked_less_and_less(
    failure: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.answer = failure
        for _ in range(600):
            assert await scene.find() is None
            scene.now += 0.1
        gaps = [round(later - earlier, 3) for earlier, later in zip(scene.fetches, scene.fetches[1:], strict=False)]
        assert gaps == sorted(gaps)
        assert 9.9 < gaps[-1] < 10.2
        assert len(scene.fetches) < 15
        scene.answer = pack(ROW)
        scene.now += 10
        assert await scene.find()

    run(scenario)
    assert "the keys of sasl.oauthbearer.jwks.endpoint.url cannot be fetched" in caplog.text


def test_keys_that_cannot_be_fetched_again_count_for_a_day_and_not_for_ever() -> None:
    async def scenario(scene: Scene) -> None:
        assert await scene.find()
        scene.answer = OSError("away")
        scene.now += DAY - 1
        assert await scene.find()
        await scene.settle()
        assert await scene.find("other") is None
        scene.now += 20
        assert await scene.find() is None
        scene.answer = pack(ROW)
        scene.now += 20
        assert await scene.find()

    run(scenario)


def test_who_hangs_up_while_waiting_ends_nobody_elses_fetch() -> None:
    async def scenario(scene: Scene) -> None:
        scene.gate.clear()
        first, second = (asyncio.ensure_future(scene.find()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        scene.gate.set()
        assert await second
        assert len(scene.fetches) == 1

    run(scenario)


def test_a_fetch_ends_with_the_broker() -> None:
    async def scenario(scene: Scene) -> None:
        scene.gate.clear()
        scene.keys.refresh_soon()
        await asyncio.sleep(0)
        await scene.keys.close()
        assert scene.keys._fetching is None
        await scene.keys.close()

    run(scenario)
