"""The keys by which an identity provider signs its tokens (a JSON Web Key Set, RFC 7517): fetched, and fetched again.

However many tokens name keys that are not there, the provider is asked once in ten seconds at most.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from korvet_fast.core.authentication.oauth_server import TokenRefused
from korvet_fast.core.authentication.sasl_server import CannotAuthenticate
from korvet_fast.rate_limited_log import RateLimitedLog

MOST_KEYS: Final = 100  # of one set
_MODULUS: Final = range(2048, 8193)  # bits of an RSA key: weaker is not safe, longer takes milliseconds
_PAUSE: Final = 10.0  # seconds from a fetch until tokens with an unknown key cause another one
_BELIEVED: Final = 86_400.0  # seconds for which keys count that could not be fetched again, at least
_NONE: Final = "no key at sasl.oauthbearer.jwks.endpoint.url fits it"

PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
# By type of key and curve. There is no algorithm here whose key could be made of what everybody knows.
_ALGORITHMS: Final[Mapping[tuple[object, object], frozenset[str]]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
    ("OKP", "Ed448"): frozenset({"EdDSA"}),
}
ALGORITHMS: Final = frozenset().union(*_ALGORITHMS.values())


class SigningKey(NamedTuple):
    """A key, and the algorithms that it may be used with. `key_id`: None if it has none."""

    key_id: str | None
    algorithms: frozenset[str]
    key: PublicKey


class RefreshTimes(NamedTuple):
    """In seconds. `refresh`: between two fetches; `backoff`: after one that failed, doubled each time up to `most`."""

    refresh: float
    backoff: float
    most: float


class SigningKeys:
    """The keys as they were last fetched. `fetch`: gets the set, with limits of its own; `now`: of a clock, in seconds.

    `start`: runs a fetch as a task, and logs what nobody foresaw. Keys that cannot be fetched again count for a day
    more, so that a provider that is away for an hour locks nobody out, and one that cannot be reached is not believed
    for ever.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[bytes]],
        times: RefreshTimes,
        now: Callable[[], float],
        start: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"],
        log: RateLimitedLog,
    ) -> None:
        self._fetch = fetch
        self._times = times
        self._now = now
        self._start = start
        self._log = log
        self._keys: Sequence[SigningKey] = ()
        self._loaded = -inf  # when they were fetched
        self._earliest = -inf  # when they may be fetched again
        self._failures = 0  # since then
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> PublicKey:
        """The key of a token, whose provider may be asked first.

        Raises `TokenRefused` if there is none, `CannotAuthenticate` while the provider does not tell its keys, or may
        not be asked for a new one yet.
        """
        if self._now() - self._loaded >= self._times.refresh:
            self.refresh_soon()
        if (found := self._choose(key_id, algorithm)) is not None:
            return found
        self.refresh_soon()
        fetching = self._fetching
        if fetching is not None:
            await asyncio.shield(fetching)
            if (found := self._choose(key_id, algorithm)) is not None:
                return found
        if self._failures or not self._is_believed:
            raise CannotAuthenticate("the keys of sasl.oauthbearer.jwks.endpoint.url cannot be fetched")
        if fetching is None:
            raise CannotAuthenticate(f"{_NONE}; it may be asked again in {_PAUSE:g} s at most")
        raise TokenRefused(_NONE)

    def refresh_soon(self) -> None:
        """Begin to fetch the keys, unless that is under way or was done a moment ago."""
        if self._fetching is None and self._now() >= self._earliest:
            self._fetching = self._start(self._refresh())

    async def close(self) -> None:
        """End a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    @property
    def _is_believed(self) -> bool:
        return self._now() - self._loaded < max(_BELIEVED, 2 * self._times.refresh)

    def _choose(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """The key with this id; for a token without one, the only key that its algorithm fits."""
        if not self._is_believed:
            return None
        fit = [each for each in self._keys if algorithm in each.algorithms and key_id in (None, each.key_id)]
        return fit[0].key if len(fit) == 1 or (fit and key_id is not None) else None

    async def _refresh(self) -> None:
        try:
            self._keys = await asyncio.to_thread(read_key_set, await self._fetch())
        except (OSError, ValueError) as error:
            wait = min(self._times.backoff * 2 ** min(self._failures, 30), self._times.most)
            self._failures += 1
            self._earliest = self._now() + wait
            self._log.warn("jwks", f"the keys of sasl.oauthbearer.jwks.endpoint.url cannot be fetched: {error}")
        else:
            self._failures = 0
            self._loaded = self._now()
            self._earliest = self._loaded + _PAUSE
        finally:
            self._fetching = None


def read_key_set(data: bytes) -> Sequence[SigningKey]:
    """The keys of a set by which signatures can be checked; others are passed over. Raises `ValueError` without any."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("what came is no JSON that anybody would write") from None
    rows = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(rows, list) or len(rows) > MOST_KEYS:
        raise ValueError(f"what came is no set of {MOST_KEYS} keys at most")
    keys = [key for row in rows if isinstance(row, dict) and (key := _read_key(row)) is not None]
    if not keys:
        raise ValueError(f"of {len(rows)} keys none is a public one, of RSA with 2048 bits or more, EC or Ed25519")
    return keys


def _read_key(row: Mapping[str, Any]) -> SigningKey | None:
    key_id, algorithm, kind, curve = (row.get(name) for name in ("kid", "alg", "kty", "crv"))
    if any(not isinstance(each, str | None) for each in (key_id, algorithm, kind, curve)):
        return None
    algorithms = _ALGORITHMS.get((kind, curve), frozenset())
    if algorithm is not None:
        algorithms &= {algorithm}
    # A key whose private part was published (`d`) signs for everybody.
    if not algorithms or row.get("use", "sig") != "sig" or "d" in row:
        return None
    try:
        key = PyJWK(dict(row), min(algorithms)).key
    except (PyJWTError, ValueError, TypeError):
        return None
    if not isinstance(key, PublicKey) or (isinstance(key, RSAPublicKey) and key.key_size not in _MODULUS):
        return None
    return SigningKey(key_id, algorithms, key)
