"""The users of SASL: their credentials in the registry, which all brokers over a store have in common.

Nothing is kept in memory, so what one broker changes holds for the next login at every other one.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Final

from korvet_fast.core.authentication.scram import (
    LEAST_ITERATIONS,
    MECHANISMS,
    SCRAM_SHA_512,
    Credential,
    Mechanism,
    make_credential,
    read_binary,
    salt_password,
    write_binary,
)
from korvet_fast.store.interface import KeyStore

_PREFIX: Final = "users/"  # of a user's key; the name follows in hex: it is free text
_SECRET: Final = "authentication-secret"  # noqa: S105  registry key: what credentials of unknown users are made of
_SALT: Final = 24  # bytes
LONGEST_NAME: Final = 1024  # bytes of a user's name

Credentials = Mapping[Mechanism, Credential]


def hash_password(mechanism: Mechanism, password: str, iterations: int = LEAST_ITERATIONS) -> Credential:
    """A new credential of a password, with a salt of its own. Takes milliseconds."""
    salt = secrets.token_bytes(_SALT)
    return make_credential(mechanism, salt_password(mechanism, password.encode(), salt, iterations), salt, iterations)


class Users:
    """The credentials of all users, by name and mechanism. All methods raise `StoreError`."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._secret = b""

    async def find(self, user: str, mechanism: Mechanism) -> Credential:
        """The credential of a user; of one who has none, one that no password fits: the same at every broker."""
        invented = self._invent(await self._read_secret(), user, mechanism)
        return (await self._load(user)).get(mechanism, invented)

    async def find_any(self, user: str) -> tuple[Mechanism, Credential]:
        """A credential to check a password against, as `find`, of the strongest mechanism that the user has."""
        invented = self._invent(await self._read_secret(), user, SCRAM_SHA_512)
        found = await self._load(user)
        strongest = max(found, key=lambda each: each.number, default=SCRAM_SHA_512)
        return strongest, found.get(strongest, invented)

    async def list(self) -> dict[str, Credentials]:
        """All users, by name."""
        found = await self._store.scan(_PREFIX)
        return {bytes.fromhex(key.removeprefix(_PREFIX)).decode(): _unpack(packed) for key, packed in found.items()}

    async def alter(self, user: str, changes: Mapping[Mechanism, Credential | None]) -> None:
        """Set credentials of a user, or remove them (None). Raises `KeyError` with a mechanism that is not there."""
        key = _key(user)
        while True:
            packed = await self._store.load(key)
            present = _unpack(packed)
            if missing := [each for each, wanted in changes.items() if wanted is None and each not in present]:
                raise KeyError(missing[0])
            wanted = {each: value for each, value in {**present, **changes}.items() if value is not None}
            if await self._store.save(key, _pack(wanted) if wanted else None, packed):
                return

    async def _load(self, user: str) -> dict[Mechanism, Credential]:
        return _unpack(await self._store.load(_key(user)))

    async def _read_secret(self) -> bytes:
        while not self._secret:
            found = await self._store.load(_SECRET)
            made = found or secrets.token_bytes(32)
            if found or await self._store.save(_SECRET, made, None):
                self._secret = made
        return self._secret

    def _invent(self, secret: bytes, user: str, mechanism: Mechanism) -> Credential:
        """A credential of nobody: who asks again gets the same salt again, as for a user who is there."""
        salt, stored, server = (
            hmac.digest(secret, f"{kind} {mechanism.name} {user}".encode(), mechanism.digest)
            for kind in ("salt", "stored", "server")
        )
        return Credential(salt[:_SALT], stored, server, LEAST_ITERATIONS)


def _key(user: str) -> str:
    # A digest where the name is longer than any that is there: keys have limits, and nobody is found by it.
    name = user.encode()
    return f"{_PREFIX}{name.hex() if len(name) <= LONGEST_NAME else hashlib.sha256(name).hexdigest()}"


def _pack(credentials: Credentials) -> bytes:
    document = {
        mechanism.name: {
            "salt": write_binary(credential.salt),
            "stored_key": write_binary(credential.stored_key),
            "server_key": write_binary(credential.server_key),
            "iterations": credential.iterations,
        }
        for mechanism, credential in credentials.items()
    }
    return json.dumps(document).encode()


def _unpack(packed: bytes | None) -> dict[Mechanism, Credential]:
    return {
        MECHANISMS[name]: Credential(
            read_binary(row["salt"]),
            read_binary(row["stored_key"]),
            read_binary(row["server_key"]),
            row["iterations"],
        )
        for name, row in json.loads(packed or b"{}").items()
    }
