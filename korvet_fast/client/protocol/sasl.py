"""The client's side of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802, 7677) and OAUTHBEARER (RFC 7628), without I/O."""

import hmac
import secrets
from collections.abc import Generator
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.core.authentication import scram
from korvet_fast.core.authentication.oauthbearer import ABORT, OAUTHBEARER, write_client_message
from korvet_fast.core.authentication.scram import MECHANISMS, Mechanism
from korvet_fast.endpoint import HttpsUrl

PLAIN: Final = "PLAIN"
SASL_MECHANISMS: Final = (PLAIN, *MECHANISMS)  # those with a password
_MOST_ITERATIONS: Final = 1_000_000  # of a broker that has its clients work longest: half a second

# Yields the tokens to send, and gets the broker's answer to each. Raises `ClientError` if the broker is not believed.
Exchange: TypeAlias = Generator[bytes, bytes, None]


class SaslLogin(NamedTuple):
    """Who logs in with a password, and how."""

    mechanism: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"SaslLogin({self.mechanism!r}, {self.user!r})"  # it may come into a log

    def exchange(self) -> Exchange:
        """One login."""
        return _plain(self) if self.mechanism == PLAIN else _scram(self, MECHANISMS[self.mechanism])


class TokenSource(Protocol):
    """Gives tokens."""

    async def fetch(self, patience: float) -> str:
        """A token that is good now. `patience`: seconds. Raises `ClientError`."""


class TokenEndpoint(NamedTuple):
    """Where a provider gives tokens, and who this client is there. `authorities`: a PEM file, the system's if ""."""

    url: HttpsUrl
    client_id: str
    secret: str
    scope: str = ""
    authorities: str = ""

    def __repr__(self) -> str:
        return f"TokenEndpoint({self.url.text!r}, {self.client_id!r})"  # no secret


class OAuthLogin:
    """Who logs in with a token. `wanted`: where it comes from; a function, or an object with a method `token`, too.

    `source`: made of that by whoever does I/O, and kept for all connections (`client/oauth.py`).
    """

    mechanism = OAUTHBEARER

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted
        self.source: TokenSource | None = None

    @property
    def user(self) -> str:
        """The name, for errors."""
        return self.wanted.client_id if isinstance(self.wanted, TokenEndpoint) else "the token of a function"


def show_token(token: str) -> Exchange:
    """One login by OAUTHBEARER. Raises `ClientError` for what is no token."""
    try:
        message = write_client_message(token)
    except ValueError as error:
        raise ClientError(f"the token cannot be sent: {error}") from None
    if (yield message):
        yield ABORT  # the broker has told that the token is not good, and refuses the login when it has this
        raise ClientError("the broker let a client in whose token it had refused")


def _plain(login: SaslLogin) -> Exchange:
    yield f"\0{login.user}\0{login.password}".encode()


def _scram(login: SaslLogin, mechanism: Mechanism) -> Exchange:
    nonce = secrets.token_urlsafe(24)
    bare = f"n={scram.write_name(login.user)},r={nonce}"
    challenge = yield f"{scram.GS2_HEADER}{bare}".encode()
    try:
        first = scram.read_message(scram.SERVER_FIRST, challenge)
        iterations, salt = int(first["iterations"]), scram.read_binary(first["salt"])
    except ValueError as error:
        raise ClientError(f"the broker's challenge cannot be used: {error}") from None
    if not first["nonce"].startswith(nonce) or first["nonce"] == nonce:
        raise ClientError("the broker's challenge is not for this login: it has another nonce")
    if not scram.LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise ClientError(
            f"the broker asks for {iterations} iterations, and {scram.LEAST_ITERATIONS} to {_MOST_ITERATIONS} are done"
        )
    bound = f"c={scram.write_binary(scram.GS2_HEADER.encode())},r={first['nonce']}"
    messages = f"{bare},{challenge.decode()},{bound}".encode()
    shown = scram.prove(mechanism, scram.salt_password(mechanism, login.password.encode(), salt, iterations), messages)
    answer = yield f"{bound},p={scram.write_binary(shown.proof)}".encode()
    try:
        final = scram.read_message(scram.SERVER_FINAL, answer)
        signature = scram.read_binary(final["signature"] or "")
    except ValueError as error:
        raise ClientError(f"the broker's last answer cannot be used: {error}") from None
    if not hmac.compare_digest(signature, shown.signature):
        raise ClientError("the broker does not know this password: its signature is wrong")
