"""FindCoordinator (key 10), versions 0-5: which broker keeps a group's state.

0 one group; 1 of a group or of a transaction, with a sentence about errors; 2 nothing new; 3 flexible; 4 several keys;
5 nothing new here. Missing on purpose: transactions. They get the one code at which every client gives up at once;
after COORDINATOR_NOT_AVAILABLE clients ask again for a minute, Java's Admin a thousand times a second.
"""

from typing import Final

from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import DESCRIBE_GROUP, require
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR

GROUP: Final = 0
TRANSACTION: Final = 1
NOBODY: Final = {"node_id": -1, "host": "", "port": -1}


async def find_coordinator(session: Session, request: Values, version: int) -> Values:
    if version < 4:
        return _find(session, request["key"], request["key_type"])
    pace = session.pace()
    rows = []
    for key in request["coordinator_keys"]:
        rows.append({"key": key, **_find(session, key, request["key_type"])})
        if pace.due():
            await pace.turn()
    return {"coordinators": rows}


def _find(session: Session, key: str, kind: int) -> Values:
    try:
        if kind == TRANSACTION:
            raise KorvetError(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "this broker serves no transactions")
        if kind != GROUP:
            raise KorvetError(Errors.INVALID_REQUEST, f"there are no coordinators of kind {kind}")
        require(session, FIND_COORDINATOR, DESCRIBE_GROUP, key)
        if not key:
            raise KorvetError(Errors.INVALID_GROUP_ID, "the name of the group is empty")
        return _locate(session, key)
    except KorvetError as error:
        code, reason = translate(error)
        return {**NOBODY, "error_code": code, "error_message": reason}


def _locate(session: Session, group_id: str) -> Values:
    broker = session.broker
    identity = broker.groups.partitions.find(group_id)
    for node in broker.cluster.nodes(session.service.listener):
        if node.id == identity:
            return {"node_id": identity, "host": node.address.host, "port": node.address.port}
    broker.cluster.refresh_soon()
    raise KorvetError(Errors.COORDINATOR_NOT_AVAILABLE, "no broker coordinates the group at this moment")
