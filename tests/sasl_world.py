"""Users of a broker, and the client's side of SASL written a second time, to send what a good client never would."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from time import monotonic
from typing import Any

from kafka_server import SASL_AUTHENTICATE, SASL_HANDSHAKE, RawClient
from korvet_fast.core.authentication.scram import MECHANISMS, SCRAM_SHA_256, SCRAM_SHA_512
from korvet_fast.core.authentication.users import Users, hash_password
from korvet_fast.rate_limited_log import RateLimitedLog

SHA_256, SHA_512 = SCRAM_SHA_256.name, SCRAM_SHA_512.name


class Keys:
    """A registry in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.loads: list[str] = []

    async def load(self, key: str) -> bytes | None:
        self.loads.append(key)
        return self.kept.get(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *_: Any) -> bool:
        if self.kept.get(key) != expected:
            return False
        self.kept |= {key: value} if value is not None else {}
        if value is None:
            del self.kept[key]
        return True

    async def scan(self, prefix: str) -> dict[str, bytes]:
        return {key: value for key, value in sorted(self.kept.items()) if key.startswith(prefix)}


def make_users(keys: Keys) -> Users:
    """The users of a registry in memory."""
    return Users(keys, RateLimitedLog(monotonic), lambda: True)


async def add_user(users: Users, name: str, password: str, *mechanisms: str) -> None:
    """Let a user in by these mechanisms, or by both."""
    wanted = [MECHANISMS[each] for each in mechanisms or MECHANISMS]
    await users.alter(name, {each: hash_password(each, password) for each in wanted}, "User:root")


def plain_token(user: str, password: str, authorized: str = "") -> bytes:
    return f"{authorized}\0{user}\0{password}".encode()


class ScramPeer:
    """A client by RFC 5802, step by step."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str = "client-nonce", header: str = "n,,"
    ) -> None:
        self.digest = MECHANISMS[mechanism].digest
        self.password = password.encode()
        self.header = header
        self.nonce = nonce
        self.bare = f"n={user},r={nonce}"
        self.signature = b""

    def first(self) -> bytes:
        return f"{self.header}{self.bare}".encode()

    def final(self, challenge: bytes, *, nonce: str | None = None, binding: str | None = None, more: str = "") -> bytes:
        """The second message; `nonce`, `binding`: other ones than those that belong there."""
        parts = dict(part.split("=", 1) for part in challenge.decode().split(","))
        bound = b64encode((self.header if binding is None else binding).encode()).decode()
        bare = f"c={bound},r={parts['r'] if nonce is None else nonce}{more}"
        messages = f"{self.bare},{challenge.decode()},{bare}".encode()
        salted = hashlib.pbkdf2_hmac(self.digest, self.password, b64decode(parts["s"]), int(parts["i"]))
        client_key = hmac.digest(salted, b"Client Key", self.digest)
        signed = hmac.digest(hashlib.new(self.digest, client_key).digest(), messages, self.digest)
        self.signature = hmac.digest(hmac.digest(salted, b"Server Key", self.digest), messages, self.digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signed, strict=True))
        return f"{bare},p={b64encode(proof).decode()}".encode()

    def believes(self, answer: bytes) -> bool:
        """Whether the broker has shown that it knows the credential."""
        return answer == b"v=" + b64encode(self.signature)


async def send_token(client: RawClient, token: bytes, version: int = 2) -> dict[str, Any]:
    return await client.ask(SASL_AUTHENTICATE, version, auth_bytes=token)


async def log_in(
    client: RawClient, user: str, password: str, mechanism: str = "PLAIN", version: int = 2
) -> dict[str, Any]:
    """The last answer; the handshake's if that is refused."""
    shaken = await client.ask(SASL_HANDSHAKE, 1, mechanism=mechanism)
    if shaken["error_code"]:
        return shaken
    if mechanism == "PLAIN":
        return await send_token(client, plain_token(user, password), version)
    peer = ScramPeer(mechanism, user, password)
    challenge = await send_token(client, peer.first(), version)
    if challenge["error_code"]:
        return challenge
    answer = await send_token(client, peer.final(bytes(challenge["auth_bytes"])), version)
    assert answer["error_code"] or peer.believes(bytes(answer["auth_bytes"]))
    return answer
