"""The users that may log in by SASL, as a client asks for them and changes them."""

import secrets
from collections.abc import Sequence
from typing import Any, Final

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.core.authentication.scram import MECHANISMS, Mechanism, salt_password
from korvet_fast.wire.kafka.shapes.security import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS

_NAMES: Final = {each.number: each.name for each in MECHANISMS.values()}
_SALT: Final = 24  # bytes


async def list_users(cluster: Cluster) -> dict[str, list[tuple[str, int]]]:
    """All users, by name: by which mechanisms each logs in, and with how many iterations. Raises `ClientError`."""
    answer = await cluster.ask_controller(DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": None})
    check_error_code("the users", answer["error_code"], answer["error_message"])
    return {
        row["user"]: [(_NAMES.get(each["mechanism"], "?"), each["iterations"]) for each in row["credential_infos"]]
        for row in answer["results"]
    }


async def set_password(
    cluster: Cluster, user: str, password: str, mechanisms: Sequence[Mechanism], iterations: int
) -> None:
    """Make a user, or give one another password; the password itself is not sent. Raises `ClientError`."""
    rows = []
    for mechanism in mechanisms:
        salt = secrets.token_bytes(_SALT)
        salted = salt_password(mechanism, password.encode(), salt, iterations)
        row = {"name": user, "mechanism": mechanism.number, "iterations": iterations}
        rows.append({**row, "salt": salt, "salted_password": salted})
    await _alter(cluster, user, {"upsertions": rows})


async def remove_user(cluster: Cluster, user: str) -> None:
    """Remove all credentials of a user. Raises `ClientError`."""
    known = (await list_users(cluster)).get(user)
    if known is None:
        raise ClientError(f"there is no user {user!r}")
    rows = [{"name": user, "mechanism": MECHANISMS[name].number} for name, _ in known]
    await _alter(cluster, user, {"deletions": rows})


async def _alter(cluster: Cluster, user: str, changes: dict[str, Any]) -> None:
    answer = await cluster.ask_controller(ALTER_USER_SCRAM_CREDENTIALS, changes)
    for row in answer["results"]:
        check_error_code(f"user {user!r}", row["error_code"], row["error_message"])
