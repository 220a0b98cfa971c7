"""The users of SASL: their credentials in the registry, which all brokers over a store have in common.

Nothing is kept in memory, so what one broker changes holds for the next login at every other one.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from korvet_fast.core.authentication.scram import (
    LEAST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    SCRAM_SHA_512,
    Credential,
    Mechanism,
    make_credential,
    read_binary,
    salt_password,
    write_binary,
)
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.interface import KeyStore

MOST: Final = 10_000  # users of a cluster; each other broker may add `_BLOCK` beyond that
_BLOCK: Final = 100  # users that a broker adds before it counts all of them again
_PREFIX: Final = "users/"  # of a user's key; the name follows in hex: it is free text
_SECRET: Final = "authentication-secret"  # noqa: S105  registry key: what credentials of unknown users are made of
_SALT: Final = 24  # bytes
LONGEST_NAME: Final = 1024  # bytes of a user's name
_SHOWN: Final = 80  # characters of a name in a line of the log

Credentials = Mapping[Mechanism, Credential]


def hash_password(mechanism: Mechanism, password: str, iterations: int = LEAST_ITERATIONS) -> Credential:
    """A new credential of a password, with a salt of its own. Takes milliseconds."""
    salt = secrets.token_bytes(_SALT)
    return make_credential(mechanism, salt_password(mechanism, password.encode(), salt, iterations), salt, iterations)


class Users:
    """The credentials of all users, by name and mechanism. All methods raise `StoreError`.

    Credentials that cannot be read are none: the user cannot log in, and is made anew by `alter`.
    """

    def __init__(self, store: KeyStore, log: RateLimitedLog, is_current: Callable[[], bool]) -> None:
        """`is_current`: whether what this broker has just loaded is what others have, too."""
        self._store = store
        self._log = log
        self._is_current = is_current
        self._secret = b""
        self._room = 0  # users that may be added before all are counted again
        self._changing = asyncio.Lock()

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
        found: dict[str, Credentials] = {}
        pace = BackgroundPace()
        rows = await self._store.scan(_PREFIX)
        self._check_current()
        for key, packed in rows.items():
            if credentials := self._read(key, packed):
                found[_read_name(key)] = credentials
            if pace.due():
                await pace.turn()
        return found

    async def alter(self, user: str, changes: Mapping[Mechanism, Credential | None], by: str) -> None:
        """Set credentials of a user, or remove them (None). `by`: who asks for that, for the log.

        Raises `KeyError` with a mechanism that is not there, or `KorvetError` POLICY_VIOLATION for one user too many.
        """
        key = _key(user)
        async with self._changing:
            while True:
                packed = await self._store.load(key)
                present = self._read(key, packed)
                if missing := [each for each, wanted in changes.items() if wanted is None and each not in present]:
                    raise KeyError(missing[0])
                wanted = {each: value for each, value in {**present, **changes}.items() if value is not None}
                if packed is None:
                    await self._take_room()
                if await self._store.save(key, _pack(wanted) if wanted else None, packed):
                    break
        done = ", ".join(f"{each.name} {'removed' if value is None else 'set'}" for each, value in changes.items())
        self._log.tell("user", f"user {user[:_SHOWN]}: {done}, as {by[:_SHOWN]} asked")

    async def _take_room(self) -> None:
        if self._room == 0:
            self._room = min(_BLOCK, max(0, MOST - len(await self._store.scan(_PREFIX))))
        if self._room == 0:
            raise KorvetError(Errors.POLICY_VIOLATION, f"a cluster has {MOST:,} users at most: remove some")
        self._room -= 1

    async def _load(self, user: str) -> dict[Mechanism, Credential]:
        key = _key(user)
        packed = await self._store.load(key)
        self._check_current()
        return self._read(key, packed)

    def _check_current(self) -> None:
        """Raises `StoreError` where others may have removed users without this broker's knowledge."""
        if not self._is_current():
            raise StoreError("this broker may be cut off from the others, who may have changed users")

    def _read(self, key: str, packed: bytes | None) -> dict[Mechanism, Credential]:
        if packed is None:
            return {}
        try:
            _read_name(key)
            return _unpack(packed)
        except (ValueError, TypeError, KeyError, AttributeError):
            self._log.fail(
                "credentials",
                f"the registry has no credentials under {key[:_SHOWN]} that can be read, so nobody logs in by them: "
                "give this user a password again (the key is the name in hexadecimal digits)",
            )
            return {}

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


def _read_name(key: str) -> str:
    """Raises `ValueError`."""
    return bytes.fromhex(key.removeprefix(_PREFIX)).decode()


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


def _unpack(packed: bytes) -> dict[Mechanism, Credential]:
    """Raises `ValueError`, `TypeError`, `KeyError`, or `AttributeError` if it is no object."""
    return {MECHANISMS[name]: _read_credential(row) for name, row in json.loads(packed).items()}


def _read_credential(row: Mapping[str, Any]) -> Credential:
    salt, stored, server = (read_binary(row[name]) for name in ("salt", "stored_key", "server_key"))
    if not LEAST_ITERATIONS <= row["iterations"] <= MOST_ITERATIONS:
        raise ValueError(f"{row['iterations']} iterations")
    return Credential(salt, stored, server, row["iterations"])
