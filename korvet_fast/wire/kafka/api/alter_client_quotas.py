"""AlterClientQuotas (key 49), versions 0-1: quotas of users and client ids are set and removed (KIP-546).

0; 1 flexible. The quotas of one entity are changed together or not at all; an entity that is named more than once is
refused. Quotas of addresses (`ip`) are refused: max.connections.per.ip and max.connection.creation.rate limit those.
Rules: ClientQuotaControlManager of Kafka; beyond them a limit must be above 0, which there stops a client for ever or
not at all.
"""

from collections.abc import Sequence

from korvet_fast.core.quotas.entity import DEFAULT, QuotaEntity
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.describe_client_quotas import CLIENT_ID, IP, USER
from korvet_fast.wire.kafka.api.repeated import find_twice
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values


async def alter_client_quotas(session: Session, request: Values, version: int) -> Values:
    pace = session.pace()
    entries = request["entries"]
    twice = find_twice(_find_key(entry["entity"]) for entry in entries)
    rows = []
    for entry in entries:
        row: Values = {"entity": entry["entity"]}
        rows.append(row)
        try:
            if twice and _find_key(entry["entity"]) in twice:
                raise KorvetError(Errors.INVALID_REQUEST, "Ignoring duplicate entity")
            changes = _read_changes(entry["ops"])
            await session.broker.quota_registry.alter(
                _read_entity(entry["entity"]), changes, session.principal, validate=request["validate_only"]
            )
        except KorvetError as error:
            row["error_code"], row["error_message"] = translate(error)
        if pace.due():
            await pace.turn()
    return {"entries": rows}


def _find_key(entity: Sequence[Values]) -> frozenset[tuple[str, str | None]]:
    """A key that two entries have in common if they mean the same entity."""
    return frozenset((part["entity_type"], part["entity_name"]) for part in entity)


def _read_entity(entity: Sequence[Values]) -> QuotaEntity:
    """Raises `KorvetError` INVALID_REQUEST."""
    names: dict[str, str] = {}
    for part in entity:
        kind, name = part["entity_type"], part["entity_name"]
        if kind in names:
            raise KorvetError(Errors.INVALID_REQUEST, f"Invalid client quota entity, duplicate entity entry {kind}")
        if kind == IP:
            text = "quotas of addresses are not kept: max.connections.per.ip limits each"
            raise KorvetError(Errors.INVALID_REQUEST, text)
        if kind not in (USER, CLIENT_ID):
            raise KorvetError(Errors.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise KorvetError(Errors.INVALID_REQUEST, f"Empty {kind} not supported")
        names[kind] = DEFAULT if name is None else name
    if not names:
        raise KorvetError(Errors.INVALID_REQUEST, "Invalid empty client quota entity")
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID))


def _read_changes(ops: Sequence[Values]) -> dict[str, float | None]:
    """Raises `KorvetError` INVALID_REQUEST."""
    changes: dict[str, float | None] = {}
    for op in ops:
        key = op["key"]
        if key in changes:
            raise KorvetError(Errors.INVALID_REQUEST, f"Duplicate quota key {key}")
        changes[key] = None if op["remove"] else op["value"]
    return changes
