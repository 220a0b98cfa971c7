"""Judges tokens of OAUTHBEARER: signed JSON Web Tokens (RFC 7519), by the keys and the claims that the settings name.

PyJWT does the work, on another thread. What Kafka's broker asks of a token is asked here: a signature, `exp`, `iat`,
a name, the expected issuer and audience (KIP-768). A token made for an audience is refused where none is expected.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jwt

from korvet_fast.core.authentication.jwks import ALGORITHMS, PublicKey, SigningKeys
from korvet_fast.core.authentication.oauth_server import BearerToken, TokenRefused
from korvet_fast.core.authentication.sasl_server import Offload
from korvet_fast.core.authentication.users import LONGEST_NAME
from korvet_fast.rate_limited_log import RateLimitedLog

_LONGEST_LIFE: Final = 1e9  # seconds
# What PyJWT and json raise for bytes that are no token: also numbers without end and brackets without end.
_MALFORMED: Final = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)


class ClaimRules(NamedTuple):
    """What a token has to claim. `subject`, `scope`: names of claims; `skew`: seconds that clocks may differ."""

    subject: str = "sub"
    scope: str = "scope"
    issuer: str = ""
    audiences: Sequence[str] = ()
    skew: int = 30

    def read(self, token: str, key: PublicKey | None, algorithm: str) -> BearerToken:
        """Check a token, its signature too if there is a key. Raises `TokenRefused`, or what `_MALFORMED` has."""
        claims = jwt.decode(
            token,
            "" if key is None else key,
            algorithms=[algorithm],
            # Without a signature PyJWT would look at no claim either, unless told to.
            options={
                "require": ["exp", "iat"],
                "verify_signature": key is not None,
                "verify_exp": True,
                "verify_nbf": True,
                "verify_iat": True,
                "verify_aud": True,
                "verify_iss": True,
            },
            audience=list(self.audiences) or None,
            issuer=self.issuer or None,
            leeway=self.skew,
        )
        ends, subject, scope = claims["exp"], claims.get(self.subject), claims.get(self.scope, [])
        if not isinstance(ends, int | float):
            raise TokenRefused("its claim exp is no number")
        if not isinstance(subject, str) or not subject.strip() or len(subject.encode()) > LONGEST_NAME:
            raise TokenRefused(f"its claim {self.subject} is no name of {LONGEST_NAME} bytes at most")
        scopes = scope if isinstance(scope, list) else [scope]
        if not all(isinstance(each, str) for each in scopes):
            raise TokenRefused(f"its claim {self.scope} is neither a text nor a list of texts")
        return BearerToken(subject, min(ends + self.skew - time.time(), _LONGEST_LIFE))


class SignedTokens:
    """Tokens that one of `keys` has signed."""

    def __init__(self, keys: SigningKeys, rules: ClaimRules, log: RateLimitedLog) -> None:
        self._keys = keys
        self._rules = rules
        self._log = log

    async def verify(self, token: str, offload: Offload) -> BearerToken:
        """See `TokenVerifier`."""
        try:
            header = _believe(await offload(_try, _read_header, token))
            key = await self._keys.find(header.key_id, header.algorithm)
            found: BearerToken = _believe(await offload(_try, self._rules.read, token, key, header.algorithm))
        except TokenRefused as error:
            # A client may hang up before its login has failed, and then nothing else would say why.
            self._log.warn("token", f"a token of OAUTHBEARER is refused: {error}")
            raise
        return found

    async def close(self) -> None:
        """End what is under way."""
        await self._keys.close()


class UnsecuredTokens:
    """Tokens that nobody has signed (`"alg": "none"`): everybody is who they say. For tests of clients."""

    def __init__(self, rules: ClaimRules) -> None:
        self._rules = rules

    async def verify(self, token: str, offload: Offload) -> BearerToken:
        """See `TokenVerifier`."""
        found: BearerToken = _believe(await offload(_try, self._read, token))
        return found

    async def close(self) -> None:
        """There is nothing under way."""

    def _read(self, token: str) -> BearerToken:
        if jwt.get_unverified_header(token).get("alg") != "none" or not token.endswith("."):
            raise TokenRefused("it is signed, and only unsecured tokens are taken here")
        return self._rules.read(token, None, "none")


class _Header(NamedTuple):
    algorithm: str
    key_id: str | None


def _read_header(token: str) -> _Header:
    header = jwt.get_unverified_header(token)
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"its algorithm is none of {', '.join(sorted(ALGORITHMS))}")
    if "crit" in header:
        raise TokenRefused("its header has extensions that have to be understood (crit)")
    return _Header(algorithm, key_id)


def _try(work: Callable[..., Any], *arguments: object) -> Any:
    """The result, or an error as a value: raised on another thread it would hold frames for long."""
    try:
        return work(*arguments)
    except TokenRefused as error:
        return error.with_traceback(None)
    except _MALFORMED as error:
        return TokenRefused(str(error) or type(error).__name__)


def _believe(found: Any) -> Any:
    if isinstance(found, TokenRefused):
        raise found
    return found
