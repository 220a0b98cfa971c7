"""The broker's side of one authentication: tokens of the client in, tokens for the client out (RFC 4422).

PLAIN (RFC 4616) is checked against the same credentials as SCRAM, so that no password is kept.
"""

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final, Protocol, TypeAlias

from korvet_fast.core.authentication import scram
from korvet_fast.core.authentication.scram import Mechanism
from korvet_fast.core.authentication.users import Users
from korvet_fast.printable import printable

# Runs work beside the loop: `ClientSession.offload`.
Offload: TypeAlias = "Callable[..., asyncio.Future[Any]]"


class AuthenticationFailed(Exception):
    """The client is not let in. The text is for the log: the client is only told that it failed.

    `user`: who it says that it is; "" where that is not known.
    """

    def __init__(self, text: str, user: str = "") -> None:
        super().__init__(text)
        self.user = user


class CannotAuthenticate(Exception):
    """Nobody can log in by this mechanism now, as the text says: a client that tries again may be let in."""


class SaslServer(Protocol):
    """One exchange (javax.security.sasl.SaslServer). `user`: who it is, once the exchange has ended well.

    `lifetime`: seconds for which the login is good then, whatever connections.max.reauth.ms says.
    """

    @property
    def user(self) -> str | None: ...

    @property
    def lifetime(self) -> float: ...

    async def evaluate(self, token: bytes) -> bytes:
        """The client's next token -> the answer. Raises `AuthenticationFailed`, `CannotAuthenticate`, `StoreError`."""


class PlainServer:
    """PLAIN: the password itself, in one token."""

    lifetime = inf

    def __init__(self, users: Users, offload: Offload) -> None:
        self.user: str | None = None
        self._users = users
        self._offload = offload

    async def evaluate(self, token: bytes) -> bytes:
        """See `SaslServer`."""
        if len(token) > scram.LONGEST:
            raise AuthenticationFailed(f"PLAIN: a token of {len(token):,} bytes")
        try:
            authorized, user, password = token.decode("utf-8").split("\0")
        except ValueError:
            raise AuthenticationFailed("PLAIN: a token that is not three texts with NUL between them") from None
        if not user or not password:
            raise AuthenticationFailed("PLAIN: no name, or no password")
        if authorized not in ("", user):
            raise AuthenticationFailed(f"PLAIN: {printable(user)} wants to act as {printable(authorized)}", user)
        mechanism, credential = await self._users.find_any(user)
        salted: bytes = await self._offload(
            scram.salt_password, mechanism, password.encode(), credential.salt, credential.iterations
        )
        shown = scram.make_credential(mechanism, salted, credential.salt, credential.iterations)
        if not hmac.compare_digest(shown.stored_key, credential.stored_key):
            raise AuthenticationFailed(f"PLAIN: a wrong name or password of {printable(user)}", user)
        self.user = user
        return b""


class ScramServer:
    """SCRAM: two tokens, and neither the password nor what is stored of it is sent.

    For a name that is not known `Users.find` makes a credential up, which no password fits: so both ways are one.
    """

    lifetime = inf

    def __init__(self, mechanism: Mechanism, users: Users, _: Offload) -> None:
        self.user: str | None = None
        self._mechanism = mechanism
        self._users = users
        self._first: _Challenge | None = None
        self._over = False

    async def evaluate(self, token: bytes) -> bytes:
        """See `SaslServer`."""
        if self._over:
            raise AuthenticationFailed(f"{self._mechanism.name}: a token after the last one")
        try:
            return await self._challenge(token) if self._first is None else self._verify(self._first, token)
        except ValueError as error:
            self._over = True
            user = "" if self._first is None else self._first.user
            raise AuthenticationFailed(f"{self._mechanism.name}: {error}", user) from None

    async def _challenge(self, token: bytes) -> bytes:
        message = scram.read_message(scram.CLIENT_FIRST, token)
        user = scram.read_name(message["user"])
        if message["authzid"] not in (None, message["user"]):
            raise ValueError(f"{printable(user)} wants to act under another name")
        nonce = message["nonce"] + secrets.token_urlsafe(24)
        credential = await self._users.find(user, self._mechanism)
        challenge = f"r={nonce},s={scram.write_binary(credential.salt)},i={credential.iterations}"
        binding = scram.write_binary(message["header"].encode())
        self._first = _Challenge(user, nonce, binding, f"{message['bare']},{challenge},", credential)
        return challenge.encode()

    def _verify(self, first: "_Challenge", token: bytes) -> bytes:
        self._over = True
        message = scram.read_message(scram.CLIENT_FINAL, token)
        if not hmac.compare_digest(message["nonce"].encode(), first.nonce.encode()):
            raise ValueError("another nonce than that of this exchange")
        if message["binding"] != first.binding:
            raise ValueError("another channel binding than that of its first message")
        messages = (first.messages + message["bare"]).encode()
        signature = scram.verify(self._mechanism, first.credential, scram.read_binary(message["proof"]), messages)
        if signature is None:
            raise ValueError(f"a wrong name or password of {printable(first.user)}")
        self.user = first.user
        return f"v={scram.write_binary(signature)}".encode()


class _Challenge:
    """What the server keeps between the two tokens."""

    __slots__ = ("binding", "credential", "messages", "nonce", "user")

    def __init__(self, user: str, nonce: str, binding: str, messages: str, credential: scram.Credential) -> None:
        self.user = user
        self.nonce = nonce
        self.binding = binding
        self.messages = messages  # the beginning of AuthMessage
        self.credential = credential


SERVERS: Final[Mapping[str, Callable[[Users, Offload], SaslServer]]] = {
    "PLAIN": PlainServer,
    scram.SCRAM_SHA_256.name: partial(ScramServer, scram.SCRAM_SHA_256),
    scram.SCRAM_SHA_512.name: partial(ScramServer, scram.SCRAM_SHA_512),
}
