"""One login of a connection, for whoever does the I/O: asyncio's connection and the blocking one."""

from collections.abc import Generator, Mapping
from typing import Any, Final, TypeAlias

from korvet_fast.client.protocol.errors import AuthenticationFailed, check_error_code
from korvet_fast.client.protocol.sasl import Exchange, OAuthLogin, SaslLogin, show_token
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.errors import ILLEGAL_SASL_STATE
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.security import SASL_AUTHENTICATE, SASL_HANDSHAKE

_RENEWED: Final = 0.9  # of the time for which a login holds

# Yields requests, and gets the answer to each; returns the seconds after which it is time for the next login.
Dialogue: TypeAlias = Generator[tuple[Message, Mapping[str, Any]], dict[str, Any], float]


async def begin_login(login: SaslLogin | OAuthLogin, patience: float) -> Exchange:
    """The messages of a login, before the connection is opened: until it is logged in it has ten seconds.

    A provider of tokens has `patience` seconds. Raises `ClientError`.
    """
    if isinstance(login, SaslLogin):
        return login.exchange()
    from korvet_fast.client.oauth import open_source  # h11, for those who need it

    return show_token(await open_source(login).fetch(patience))


def log_in(endpoint: Address, login: SaslLogin | OAuthLogin, exchange: Exchange) -> Dialogue:
    """Show the messages of `exchange` to a broker (KIP-152). Raises `ClientError`; the connection is of no use then."""
    subject = f"{endpoint} as {login.user!r}"
    shaken = yield SASL_HANDSHAKE, {"mechanism": login.mechanism}
    if shaken["error_code"] == ILLEGAL_SASL_STATE:
        raise AuthenticationFailed(f"{endpoint} asks nobody to log in: set security.protocol=SSL, or PLAINTEXT")
    known = ", ".join(shaken["mechanisms"])
    check_error_code(subject, shaken["error_code"], f"{login.mechanism} is not among its mechanisms: {known}")
    answer: dict[str, Any] = {}
    token: bytes | None = next(exchange)
    while token is not None:
        answer = yield SASL_AUTHENTICATE, {"auth_bytes": token}
        check_error_code(subject, answer["error_code"], answer["error_message"])
        token = _go_on(exchange, bytes(answer["auth_bytes"]))
    lifetime = answer["session_lifetime_ms"]
    return _RENEWED * lifetime / 1000 if lifetime else float("inf")


def _go_on(exchange: Exchange, answer: bytes) -> bytes | None:
    """The next token of a login, or None at its end."""
    try:
        return exchange.send(answer)
    except StopIteration:
        return None
