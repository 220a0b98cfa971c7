"""OAUTHBEARER's messages (RFC 7628, 3), the same for both sides, without state."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

OAUTHBEARER: Final = "OAUTHBEARER"
LONGEST: Final = 64 * 1024  # bytes of a message: tokens that name hundreds of groups have a third of it
INVALID_TOKEN: Final = b'{"status":"invalid_token"}'  # what the broker answers; the reason is for its log alone
ABORT: Final = b"\x01"  # what the client answers to that, and then the login has failed

_NAME: Final = r"(?:[^,=\x00-\x1f\x7f]|=2C|=3D)+"
_MESSAGE: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\t\n\r\x20-\x7e]*\x01)*)\x01")
_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[A-Za-z0-9_.-]+)")
_EXTENSION: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\t\n\r\x20-\x7e]+")


class ClientMessage(NamedTuple):
    """`token`: a JWS in its compact form, not looked into. `authzid`: the name to act under, "" if none was sent."""

    token: str
    authzid: str


def read_client_message(message: bytes) -> ClientMessage:
    """The client's first message. Raises `ValueError` for another form; the error quotes nothing of it.

    No channel binding but `n` is taken, as in Kafka; extensions (KIP-342) are passed over.
    """
    if len(message) > LONGEST:
        raise ValueError(f"a message of {len(message):,} bytes")
    found = _MESSAGE.fullmatch(message.decode("utf-8"))
    if found is None:
        raise ValueError("no message of the form of RFC 7628")
    pairs = [pair.partition("=") for pair in found["pairs"].split("\x01")[:-1]]
    shown = [value for key, _, value in pairs if key == "auth"]
    if len(shown) != 1:
        raise ValueError(f"a message with {len(shown)} tokens")
    bearer = _BEARER.fullmatch(shown[0])
    if bearer is None:
        raise ValueError("auth is not Bearer and a token")
    return ClientMessage(bearer["token"], (found["authzid"] or "").replace("=2C", ",").replace("=3D", "="))


def write_client_message(token: str, extensions: Mapping[str, str] | None = None) -> bytes:
    """The client's first message. Raises `ValueError` for a token or an extension that it cannot carry."""
    if _BEARER.fullmatch(f"Bearer {token}") is None:
        raise ValueError("a token has letters, digits and . - _ only")
    pairs = ""
    for key, value in (extensions or {}).items():
        if key == "auth" or _EXTENSION.fullmatch(key) is None or _VALUE.fullmatch(value) is None:
            raise ValueError(f"the extension {key!r}: names are letters and not `auth`, values printable ASCII")
        pairs += f"{key}={value}\x01"
    return f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode("ascii")
