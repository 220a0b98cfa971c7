"""The broker's side of OAUTHBEARER (RFC 7628, KIP-255): one message with a token that others have signed."""

from math import inf
from typing import NamedTuple, Protocol

from korvet_fast.core.authentication.oauthbearer import INVALID_TOKEN, OAUTHBEARER, read_client_message
from korvet_fast.core.authentication.sasl_server import AuthenticationFailed, Offload
from korvet_fast.printable import printable


class BearerToken(NamedTuple):
    """A token that was found good. `subject`: whom it names; `lifetime`: seconds for which it is still good."""

    subject: str
    lifetime: float


class TokenRefused(Exception):
    """The token is not good. The text is for the log, and quotes nothing of the token."""


class TokenVerifier(Protocol):
    """Judges tokens."""

    async def verify(self, token: str, offload: Offload) -> BearerToken:
        """Raises `TokenRefused`, or `CannotAuthenticate` where nothing can be said of any token now."""


class OAuthBearerServer:
    """OAUTHBEARER: one message if the token is good.

    Otherwise a client is told so in JSON, answers that with a byte, and then the login has failed (RFC 7628, 3.2.3).
    """

    def __init__(self, verifier: TokenVerifier, offload: Offload) -> None:
        self.user: str | None = None
        self.lifetime = inf
        self._verifier = verifier
        self._offload = offload
        self._failure = ""

    async def evaluate(self, token: bytes) -> bytes:
        """See `SaslServer`."""
        if self._failure:
            raise AuthenticationFailed(self._failure)
        self._failure = f"{OAUTHBEARER}: a second message"
        try:
            message = read_client_message(token)
            found = await self._verifier.verify(message.token, self._offload)
        except ValueError as error:
            raise AuthenticationFailed(f"{OAUTHBEARER}: {error}") from None
        except TokenRefused as error:
            self._failure = f"{OAUTHBEARER}: {error}"
            return INVALID_TOKEN
        if message.authzid not in ("", found.subject):
            raise AuthenticationFailed(
                f"{OAUTHBEARER}: {printable(found.subject)} wants to act as {printable(message.authzid)}"
            )
        self.user, self.lifetime = found.subject, found.lifetime
        return b""
