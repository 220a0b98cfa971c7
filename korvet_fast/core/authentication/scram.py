"""SCRAM's arithmetic and its texts (RFC 5802, RFC 7677), the same for both sides, without state."""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

LEAST_ITERATIONS: Final = 4096  # as RFC 7677 and Kafka have it
MOST_ITERATIONS: Final = 16_384  # as Kafka has it: every login costs so many
LONGEST: Final = 4096  # bytes of a message
GS2_HEADER: Final = "n,,"  # no channel binding, no other name to act under


class Mechanism(NamedTuple):
    """`number`: Kafka's for it, `digest`: hashlib's name of its hash."""

    name: str
    number: int
    digest: str


SCRAM_SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS: Final[Mapping[str, Mechanism]] = {each.name: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}


class Credential(NamedTuple):
    """What a server keeps of a password by one mechanism; nobody can log in with it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class Login(NamedTuple):
    """What both sides compute of one exchange. `signature`: by which the server shows that it has the credential."""

    proof: bytes
    signature: bytes


def salt_password(mechanism: Mechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """SaltedPassword (`Hi`): slow by intent. Kafka's clients send passwords in UTF-8 as they are, without SASLprep."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password, salt, iterations)


def make_credential(mechanism: Mechanism, salted: bytes, salt: bytes, iterations: int) -> Credential:
    """The credential of a salted password."""
    return Credential(salt, _stored_key(mechanism, salted), _sign(mechanism, salted, b"Server Key"), iterations)


def prove(mechanism: Mechanism, salted: bytes, messages: bytes) -> Login:
    """A client's proof that it knows the password, and the signature to expect. `messages`: AuthMessage."""
    client_key = _sign(mechanism, salted, b"Client Key")
    proof = _xor(client_key, _sign(mechanism, _stored_key(mechanism, salted), messages))
    return Login(proof, _sign(mechanism, _sign(mechanism, salted, b"Server Key"), messages))


def verify(mechanism: Mechanism, credential: Credential, proof: bytes, messages: bytes) -> bytes | None:
    """The server's signature if the proof is right, in the same time as None if it is wrong."""
    signed = _sign(mechanism, credential.stored_key, messages)
    client_key = _xor(proof, signed) if len(proof) == len(signed) else bytes(len(signed))
    signature = _sign(mechanism, credential.server_key, messages)
    right = hmac.compare_digest(hashlib.new(mechanism.digest, client_key).digest(), credential.stored_key)
    return signature if right else None


def write_name(name: str) -> str:
    """A user's name as it stands in a message (saslname)."""
    return name.replace("=", "=3D").replace(",", "=2C")


def read_name(written: str) -> str:
    """A name from a message whose form was checked."""
    return written.replace("=2C", ",").replace("=3D", "=")


def write_binary(data: bytes) -> str:
    """Base64, in one line."""
    return b64encode(data).decode("ascii")


def read_binary(text: str) -> bytes:
    """Base64 without anything else in it. Raises `ValueError`."""
    return b64decode(text, validate=True)


_NAME: Final = r"(?:[^,=\0]|=2C|=3D)+"
_NONCE: Final = r"[!-+\--~]+"  # printable, without a comma
_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^,\0]+)*"
# An extension that has to be understood would stand in front of the name (m=): none is, so none fits.
CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
SERVER_FIRST: Final = re.compile(
    rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[1-9][0-9]{{0,8}}){_EXTENSIONS}"
)
SERVER_FINAL: Final = re.compile(rf"(?:v=(?P<signature>{_BASE64})|e=(?P<error>[^,\0]+)){_EXTENSIONS}")


def read_message(pattern: re.Pattern[str], message: bytes) -> re.Match[str]:
    """The parts of a message. Raises `ValueError` if it has another form, or is too long to have one."""
    if len(message) > LONGEST:
        raise ValueError(f"a SCRAM message of {len(message):,} bytes")
    found = pattern.fullmatch(message.decode("utf-8"))
    if found is None:
        raise ValueError("no SCRAM message of the form that has to come")
    return found


def _stored_key(mechanism: Mechanism, salted: bytes) -> bytes:
    return hashlib.new(mechanism.digest, _sign(mechanism, salted, b"Client Key")).digest()


def _sign(mechanism: Mechanism, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, mechanism.digest)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
