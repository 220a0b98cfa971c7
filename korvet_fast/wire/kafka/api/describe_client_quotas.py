"""DescribeClientQuotas (key 48), versions 0-1: the quotas of users and client ids that a filter chooses (KIP-546).

0; 1 flexible. No quota is kept for an address (`ip`), so none is found. Rules: ClientQuotasImage of Kafka.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from korvet_fast.core.quotas.entity import DEFAULT, QuotaEntity, Quotas
from korvet_fast.core.quotas.entity_filter import ANY, EntityFilter
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Answer, Session, Values
from korvet_fast.wire.kafka.shapes.quorum import DESCRIBE_CLIENT_QUOTAS

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2  # match types
_ENTRIES: Final = ArrayEncoder(DESCRIBE_CLIENT_QUOTAS.response_shape, "entries")


async def describe_client_quotas(session: Session, request: Values, version: int) -> Answer:
    pace = session.pace()
    try:
        wanted = _read_filter(request["components"], strict=request["strict"])
    except KorvetError as error:
        code, message = translate(error)
        return {"error_code": code, "error_message": message, "entries": None}
    every = list(session.broker.quotas.entities.items()) if wanted is not None else []
    chosen = await pace.map(lambda row: wanted is not None and wanted.matches(row[0]), every)
    found = [row for row, good in zip(every, chosen, strict=True) if good]
    found.sort(key=lambda row: (row[0].user or "", row[0].client_id or ""))
    rows = (_tell(entity, quotas) for entity, quotas in found)
    return await _ENTRIES.reply({"correlation_id": request["correlation_id"]}, len(found), rows, version, pace)


def _read_filter(components: Sequence[Values], *, strict: bool) -> EntityFilter | None:
    """The filter; None: it chooses nothing that can be here. Raises `KorvetError`."""
    wanted: dict[str, object] = {}
    for component in components:
        kind = component["entity_type"]
        if not kind:
            raise KorvetError(Errors.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in wanted:
            raise KorvetError(Errors.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise KorvetError(Errors.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        wanted[kind] = _read_match(component["match_type"], component["match"])
    if IP in wanted and len(wanted) > 1:
        text = "IP filter component should not be used with user or clientId filter component."
        raise KorvetError(Errors.INVALID_REQUEST, f"Invalid entity filter component combination. {text}")
    if IP in wanted or _NOBODY in wanted.values():
        return None
    return EntityFilter(wanted.get(USER), wanted.get(CLIENT_ID), strict)


_NOBODY: Final = object()  # a name that no entity has


def _read_match(kind: int, name: str | None) -> object:
    """Raises `KorvetError` INVALID_REQUEST."""
    if kind == _EXACT:
        if name is None:
            raise KorvetError(
                Errors.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
        return name or _NOBODY
    if kind not in (_DEFAULT, _SPECIFIED):
        raise KorvetError(Errors.INVALID_REQUEST, f"Unknown match type {kind}")
    if name is not None:
        said = "DEFAULT" if kind == _DEFAULT else "SPECIFIED"
        text = f"Request specified MATCH_TYPE_{said}, but also specified a match string."
        raise KorvetError(Errors.INVALID_REQUEST, text)
    return DEFAULT if kind == _DEFAULT else ANY


def _tell(entity: QuotaEntity, quotas: Quotas) -> Mapping[str, object]:
    named = ((USER, entity.user), (CLIENT_ID, entity.client_id))
    return {
        "entity": [{"entity_type": kind, "entity_name": name or None} for kind, name in named if name is not None],
        "values": [{"key": key, "value": value} for key, value in sorted(quotas.items())],
    }
