"""DescribeAcls (key 29), CreateAcls (30), DeleteAcls (31), versions 1-3 (KIP-140).

1 prefixes as resources; 2 flexible; 3 users as resources. Without an authorizer all are refused with SECURITY_DISABLED,
as by Kafka: tools that list ACLs know this code, and go on without them.
"""

from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.acls.registry import AclRegistry
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder
from korvet_fast.wire.kafka.errors import SECURITY_DISABLED, translate
from korvet_fast.wire.kafka.session import Answer, Session, Values
from korvet_fast.wire.kafka.shapes.security import DESCRIBE_ACLS

_REFUSED: Final[Values] = {
    "error_code": SECURITY_DISABLED,
    "error_message": "No Authorizer is configured: this broker keeps no ACLs, and everybody may do everything.",
}
_RESOURCES: Final = ArrayEncoder(DESCRIBE_ACLS.response_shape, "resources")
_PATTERN: Final = itemgetter(0, 1, 2)  # of a binding: the type of its resource, its name, and how it is to be read


async def describe_acls(session: Session, request: Values, version: int) -> Answer:
    acls = session.broker.acls
    if acls is None:
        return dict(_REFUSED)
    pace = session.pace()
    try:
        found = await acls.find(_read_filter(request), pace)
    except KorvetError as error:
        return _tell_error(error)
    patterns = [(pattern, list(bindings)) for pattern, bindings in groupby(found, _PATTERN)]
    rows = (
        {
            "resource_type": resource,
            "resource_name": name,
            "pattern_type": pattern,
            "acls": [_tell(binding) for binding in bindings],
        }
        for (resource, name, pattern), bindings in patterns
    )
    return await _RESOURCES.reply({"correlation_id": request["correlation_id"]}, len(patterns), rows, version, pace)


async def create_acls(session: Session, request: Values, version: int) -> Values:
    acls = session.broker.acls
    if acls is None:
        return {"results": [_REFUSED] * len(request["creations"])}
    pace = session.pace()
    rows: list[Values] = []
    good: list[AclBinding] = []
    for asked in request["creations"]:
        try:
            binding = _read_binding(asked)
        except KorvetError as error:
            rows.append(_tell_error(error))
        else:
            rows.append({})
            good.append(binding)
        if pace.due():
            await pace.turn()
    if good and (failure := await _create(acls, good, session.principal)) is not None:
        rows = [row or failure for row in rows]
    return {"results": rows}


async def _create(acls: AclRegistry, bindings: list[AclBinding], by: str) -> Values | None:
    """Returns the error, if they cannot be added."""
    try:
        await acls.create(bindings, by)
    except KorvetError as error:
        return _tell_error(error)
    return None


async def delete_acls(session: Session, request: Values, version: int) -> Values:
    acls = session.broker.acls
    if acls is None:
        return {"filter_results": [_REFUSED] * len(request["filters"])}
    rows: list[Values] = []
    good: list[AclFilter] = []
    for asked in request["filters"]:
        try:
            good.append(_read_filter(asked))
            rows.append({})
        except KorvetError as error:
            rows.append(_tell_error(error))
    try:
        found = iter(await acls.delete(good, session.principal, session.pace()))
    except KorvetError as error:
        return {"filter_results": [row or _tell_error(error) for row in rows]}
    return {"filter_results": [row or {"matching_acls": list(map(_tell_whole, next(found)))} for row in rows]}


def _read_binding(asked: Values) -> AclBinding:
    """Raises `KorvetError` INVALID_REQUEST."""
    binding = AclBinding(
        _read(ResourceType, asked["resource_type"]),
        asked["resource_name"],
        _read(PatternType, asked["resource_pattern_type"]),
        asked["principal"],
        asked["host"],
        _read(Operation, asked["operation"]),
        _read(Permission, asked["permission_type"]),
    )
    binding.check()
    return binding


def _read_filter(asked: Values) -> AclFilter:
    """Raises `KorvetError` INVALID_REQUEST."""
    return AclFilter(
        _read(ResourceType, asked["resource_type_filter"]),
        asked["resource_name_filter"],
        _read(PatternType, asked["pattern_type_filter"]),
        asked["principal_filter"],
        asked["host_filter"],
        _read(Operation, asked["operation"]),
        _read(Permission, asked["permission_type"]),
    )


def _read(kind: Any, value: int) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise KorvetError(Errors.INVALID_REQUEST, f"there is no {kind.__name__} {value}") from None


def _tell_error(error: KorvetError) -> Values:
    code, sentence = translate(error)
    return {"error_code": code, "error_message": sentence}


def _tell(binding: AclBinding) -> Values:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission_type": binding.permission,
    }


def _tell_whole(binding: AclBinding) -> Values:
    pattern = {"resource_type": binding.resource, "resource_name": binding.name, "pattern_type": binding.pattern}
    return pattern | _tell(binding)
