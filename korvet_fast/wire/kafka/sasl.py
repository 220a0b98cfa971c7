"""How a client of a listener with SASL logs in, and logs in again (KIP-43, KIP-152, KIP-368): the state machine.

Kafka's is SaslServerAuthenticator. This one takes ApiVersions as often as a client asks, until it names a mechanism,
and goes on serving a client that logs in again.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from math import inf
from struct import Struct
from typing import Any, Final, TypeAlias

from korvet_fast.core.authentication.sasl_server import AuthenticationFailed, CannotAuthenticate, SaslServer
from korvet_fast.errors import StoreError
from korvet_fast.printable import printable
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.errors import ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM
from korvet_fast.wire.kafka.shapes.message import API_VERSIONS
from korvet_fast.wire.kafka.shapes.security import SASL_AUTHENTICATE, SASL_HANDSHAKE

Values: TypeAlias = dict[str, Any]

SASL_KEYS: Final = frozenset({SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key})
_AGAIN: Final = 1.0  # seconds between two logins of one connection, at least; as in Kafka
_KEY: Final = Struct(">h")
_USER: Final = "User:"


class State(Enum):
    """What has to come next."""

    HANDSHAKE = auto()
    TOKEN = auto()
    RAW_TOKEN = auto()  # the token itself, in no request: after version 0 of SaslHandshake
    AUTHENTICATED = auto()
    FAILED = auto()


# The APIs whose requests may come in each state; of others nothing is served.
_EXPECTED: Final = {
    State.HANDSHAKE: frozenset({API_VERSIONS, SASL_HANDSHAKE.key}),
    State.TOKEN: frozenset({SASL_AUTHENTICATE.key}),
    State.AUTHENTICATED: SASL_KEYS,
}


class SaslAuthentication:
    """The logins of one connection. `make_server`: the broker's side of one by a mechanism.

    `lifetime`: seconds that each holds, 0 for ever or as long as its token; `now`: of a clock, in seconds.
    `principal`: who the client is, None before its first login. `failure`: why the connection has to end, for the log;
    `claimed`: the principal that the client said it was then, or "".
    """

    def __init__(
        self,
        make_server: Callable[[str], SaslServer],
        mechanisms: Sequence[str],
        lifetime: float,
        now: Callable[[], float],
    ) -> None:
        self.principal: str | None = None
        self.failure = self.claimed = ""
        self._make_server = make_server
        self._mechanisms = mechanisms
        self._lifetime = lifetime or inf
        self._now = now
        self._state = State.HANDSHAKE
        self._mechanism = ""
        self._wanted = ""  # the mechanism of the first login
        self._server: SaslServer | None = None
        self._granted = inf  # seconds for which the last login was to hold
        self._ends = inf  # when the login does not hold any more
        self._last = -inf  # when the client began to log in again
        self._busy = False

    def serves(self, frame: bytearray) -> bool:
        """Whether the request is not about logging in, and the client's login holds; `begin` is for others."""
        return self.principal is not None and _read_key(frame) not in SASL_KEYS and self._now() <= self._ends

    @property
    def wants_raw(self) -> bool:
        """Whether the next frame is a token, and no request."""
        return self._state is State.RAW_TOKEN

    def begin(self, frame: bytearray) -> None:
        """Check that this frame may come now; `end` follows. Raises `CloseConnection`."""
        key = _read_key(frame)
        if self.principal is not None and key not in SASL_KEYS:
            who = printable(self.principal)
            raise CloseConnection(f"the login of {who} holds no longer (connections.max.reauth.ms, or its token)")
        if self._busy or self._state is State.FAILED:
            raise CloseConnection("a request came before the answer to the last one, and the client has not logged in")
        if not self.wants_raw and key not in _EXPECTED[self._state]:
            raise CloseConnection(f"API key {key} came before the client had logged in")
        self._busy = True

    def end(self) -> None:
        """The answer to the frame of `begin` is made."""
        self._busy = False

    def shake_hands(self, mechanism: str, version: int) -> Values:
        """Answer SaslHandshake. Raises `CloseConnection` where nobody can log in by the mechanism."""
        if self.principal is not None and not self._may_log_in_again(version):
            return {"error_code": ILLEGAL_SASL_STATE, "mechanisms": self._mechanisms}
        if mechanism not in self._mechanisms:
            self._fail(f"it asked for the mechanism {mechanism[:40]!r}, and sasl.enabled.mechanisms has others")
            return {"error_code": UNSUPPORTED_SASL_MECHANISM, "mechanisms": self._mechanisms}
        self._mechanism = mechanism
        try:
            self._server = self._make_server(mechanism)
        except CannotAuthenticate as error:
            raise CloseConnection(f"nobody can log in now: {error}") from None
        self._state = State.TOKEN if version else State.RAW_TOKEN
        return {"error_code": 0, "mechanisms": self._mechanisms}

    async def authenticate(self, token: bytes) -> Values:
        """Answer SaslAuthenticate. Raises `CloseConnection` where the store does not tell the credentials."""
        if self._server is None:
            return {"error_code": ILLEGAL_SASL_STATE, "error_message": "SaslHandshake comes first"}
        try:
            answer = await self._evaluate(self._server, token)
        except AuthenticationFailed as error:
            self._fail(f"it could not log in: {error}", error.user)
            text = f"Authentication failed due to invalid credentials with SASL mechanism {self._mechanism}"
            return {"error_code": SASL_AUTHENTICATION_FAILED, "error_message": text}
        for_ever = self._server is not None or self._granted == inf
        lifetime = 0 if for_ever else max(1, round(self._granted * 1000))
        return {"error_code": 0, "auth_bytes": answer, "session_lifetime_ms": lifetime}

    async def exchange_raw(self, token: bytes) -> bytes | None:
        """Answer a token that came in no request; None: there is no answer to a failure. Raises as `authenticate`."""
        assert self._server is not None, "the state says so"
        try:
            return await self._evaluate(self._server, token)
        except AuthenticationFailed as error:
            self._fail(f"it could not log in: {error}", error.user)
            return None

    async def _evaluate(self, server: SaslServer, token: bytes) -> bytes:
        try:
            answer = await server.evaluate(token)
        except StoreError as error:
            # A failed login would be final for a client; one that is cut off tries again.
            raise CloseConnection(f"nobody can log in now: {error.detail}") from None
        except CannotAuthenticate as error:
            raise CloseConnection(f"nobody can log in now: {error}") from None
        if server.user is not None:
            self._accept(_USER + server.user, server.lifetime)
        return answer

    def _accept(self, principal: str, lifetime: float) -> None:
        if self.principal is not None and (principal, self._mechanism) != (self.principal, self._wanted):
            raise AuthenticationFailed(
                f"it was {printable(self.principal)} by {self._wanted}, and may not become another",
                principal.removeprefix(_USER),
            )
        self.principal, self._wanted = principal, self._mechanism
        self._state, self._server = State.AUTHENTICATED, None
        self._granted = min(self._lifetime, lifetime)
        self._ends = self._now() + self._granted

    def _may_log_in_again(self, version: int) -> bool:
        """Whether another login may begin; not by tokens in no requests: nothing tells them from requests."""
        now = self._now()
        if not version or now - self._last < _AGAIN:
            return False
        self._last = now
        return True

    def _fail(self, why: str, user: str = "") -> None:
        self.failure, self.claimed = why, user and _USER + user
        self._state, self._server = State.FAILED, None


def _read_key(frame: bytearray) -> int:
    return int(_KEY.unpack_from(frame)[0]) if len(frame) >= _KEY.size else -1
