"""AlterUserScramCredentials (key 51), version 0: users are made, get other passwords, and go (KIP-554).

A user's changes are all made or none, and each has one row in the answer. Rules: ScramControlManager of Kafka.
"""

from collections import defaultdict
from typing import Final

from korvet_fast.core.authentication.scram import (
    LEAST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    Credential,
    Mechanism,
    make_credential,
)
from korvet_fast.core.authentication.users import LONGEST_NAME
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.errors import (
    DUPLICATE_RESOURCE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNSUPPORTED_SASL_MECHANISM,
    shorten,
    translate,
)
from korvet_fast.wire.kafka.rights import ALTER_CLUSTER, require
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.security import ALTER_USER_SCRAM_CREDENTIALS

_BY_NUMBER: Final = {each.number: each for each in MECHANISMS.values()}
_LONGEST: Final = 1024  # bytes of a salt, or of a salted password


class _RequestError(Exception):
    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


async def alter_user_scram_credentials(session: Session, request: Values, version: int) -> Values:
    pace = session.pace()
    changes: defaultdict[str, list[Values]] = defaultdict(list)
    for row in (*request["deletions"], *request["upsertions"]):
        changes[row["name"]].append(row)
    results = []
    for name, rows in changes.items():
        try:
            require(session, ALTER_USER_SCRAM_CREDENTIALS, ALTER_CLUSTER)
            await _alter(session, name, rows)
            code, why = 0, None
        except _RequestError as error:
            code, why = error.code, shorten(str(error))
        except KorvetError as error:
            code, why = translate(error)
        results.append({"user": name, "error_code": code, "error_message": why})
        if pace.due():
            await pace.turn()
    return {"results": results}


async def _alter(session: Session, name: str, rows: list[Values]) -> None:
    """Raises `_RequestError`, `KorvetError`."""
    if not name or len(name.encode()) > LONGEST_NAME:
        raise _RequestError(UNACCEPTABLE_CREDENTIAL, f"a user's name has 1 to {LONGEST_NAME} bytes")
    wanted: dict[Mechanism, Credential | None] = {}
    for row in rows:
        mechanism = _BY_NUMBER.get(row["mechanism"])
        if mechanism is None:
            raise _RequestError(UNSUPPORTED_SASL_MECHANISM, f"{row['mechanism']} is no mechanism of SCRAM")
        if mechanism in wanted:
            raise _RequestError(DUPLICATE_RESOURCE, f"{mechanism.name} of {name!r} is changed twice in this request")
        wanted[mechanism] = _read(mechanism, row) if "salt" in row else None
    try:
        await session.broker.users.alter(name, wanted, session.principal)
    except KeyError as error:
        raise _RequestError(RESOURCE_NOT_FOUND, f"the user {name!r} has no {error.args[0].name}") from None


def _read(mechanism: Mechanism, row: Values) -> Credential:
    salt, salted, iterations = bytes(row["salt"]), bytes(row["salted_password"]), row["iterations"]
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        text = f"{iterations} iterations: there are at least {LEAST_ITERATIONS} and at most {MOST_ITERATIONS}"
        raise _RequestError(UNACCEPTABLE_CREDENTIAL, text)
    if not 0 < len(salt) <= _LONGEST or not 0 < len(salted) <= _LONGEST:
        raise _RequestError(UNACCEPTABLE_CREDENTIAL, f"salt and salted password have 1 to {_LONGEST} bytes")
    return make_credential(mechanism, salted, salt, iterations)
