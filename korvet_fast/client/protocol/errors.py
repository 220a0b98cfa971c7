"""The errors that a client meets: no connection, an answer that is not Kafka's, or an error code."""

import os
from typing import Final

from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import CODES, LONGEST_MESSAGE, NETWORK_EXCEPTION, shorten

_ERRORS = {code: error for error, code in CODES.items()}
# What passes by Kafka's table too (its exception is a RetriableException), and is none of our `Errors`: in this order
# REPLICA_NOT_AVAILABLE, NOT_CONTROLLER, CONCURRENT_TRANSACTIONS, errors of fetch sessions, LISTENER_NOT_FOUND,
# ELIGIBLE_LEADERS_NOT_AVAILABLE, UNSTABLE_OFFSET_COMMIT, INCONSISTENT_TOPIC_ID, errors of fetch and share sessions.
_ALSO_RETRIABLE: Final = frozenset({NETWORK_EXCEPTION, 9, 41, 51, 70, 71, 72, 83, 88, 103, 106, 122, 123, 133})


def error_of(code: int) -> Errors:
    """The error of a code, or UNKNOWN_SERVER_ERROR if the code is new."""
    return _ERRORS.get(code, Errors.UNKNOWN_SERVER_ERROR)


class ClientError(Exception):
    """A request failed. The text says which, why, and what to do about it."""


class Unreachable(ClientError):
    """No broker accepts a connection at an address."""


class NotRegistered(ClientError):
    """The cluster has no broker with this id at this moment."""


class ConnectionLost(ClientError):
    """The connection broke, or an answer did not come in time. The same request may succeed on a new connection."""


class UnsupportedVersion(ClientError):
    """A broker serves no version of a request that this client knows."""


class AuthenticationFailed(ClientError):
    """One side does not believe who the other is."""


class BrokerError(ClientError):
    """A broker answered with an error code. `error`: which, or UNKNOWN_SERVER_ERROR if its code is new."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.error = error_of(code)
        self.retriable = is_retriable_code(code)


class TokenUnavailable(ClientError):
    """The provider of tokens does not answer, or not now. The same request may succeed later."""


def refused_certificate(endpoint: object, reason: str) -> AuthenticationFailed | None:
    """The error, if `reason` is an alert by which the other side of TLS refuses this one's certificate (RFC 8446, 6.2).

    In TLS 1.3 the alert comes after the handshake.
    """
    if "alert" not in reason or not ("certificate" in reason or "unknown ca" in reason):
        return None
    return AuthenticationFailed(f"{endpoint} refuses the certificate of this side, or wants one ({reason})")


def is_retriable_code(code: int) -> bool:
    """Whether the same request may succeed later, by Kafka's table of errors."""
    return error_of(code).retriable or code in _ALSO_RETRIABLE


def is_retriable(error: ClientError, unknown_topics: bool = False) -> bool:
    """Whether the same request may succeed later, after new metadata and on new connections.

    `unknown_topics`: the caller expects that a topic is created meanwhile.
    """
    if isinstance(error, BrokerError):
        return error.retriable and (unknown_topics or error.error != Errors.UNKNOWN_TOPIC_OR_PARTITION)
    return isinstance(error, ConnectionLost | Unreachable | TokenUnavailable)


def is_fatal(error: ClientError) -> bool:
    """Whether the same request is refused later too, as Kafka's producer sees it: it fails then what waits for it."""
    if isinstance(error, BrokerError):
        return not error.retriable
    return isinstance(error, UnsupportedVersion | AuthenticationFailed)


def explain(code: int, detail: str | None = None) -> str:
    """An error code as a sentence. `detail`: the broker's own sentence, which replaces the general one; of what a
    broker says, so much as a person can read.
    """
    error = _ERRORS.get(code)
    if detail:
        detail = shorten("".join(each if each.isprintable() else " " for each in detail[: LONGEST_MESSAGE + 1]))
    if error is None:
        return f"{(detail or 'the broker refused').rstrip('.')} (error {code})"
    return f"{(detail or error.sentence).rstrip('.')} ({error})"


def broker_error(subject: str, code: int, detail: str | None = None) -> BrokerError:
    """The exception for an error code. `subject`: the thing that the request was about."""
    return BrokerError(f"{subject}: {explain(code, detail)}", code)


def check_error_code(subject: str, code: int, detail: str | None = None) -> None:
    """Raise `BrokerError` about `subject` unless the code is 0."""
    if code:
        raise broker_error(subject, code, detail)


def os_reason(error: OSError) -> str:
    """Why a call failed, in the system's words: asyncio and the name lookup write other things into `strerror`.

    In OpenSSL's words where TLS failed (`ssl.SSLError`, which is an `OSError` with numbers of its own).
    """
    if (reason := getattr(error, "reason", None)) is not None:
        return str(reason).replace("_", " ").lower()
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
