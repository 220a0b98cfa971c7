"""Keys and Vote: what the leader of the metadata log does for the others, and who may be that."""

from korvet_fast.core.replication.peers import KeyRequest, KeyVerb, NotCarriedOut, VoteRequest
from korvet_fast.core.replication.quorum import LogPosition
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.errors import number, translate
from korvet_fast.wire.kafka.session import Values
from korvet_fast.wire.replica.session import Session


async def keys(session: Session, request: Values, version: int) -> Values:
    changes = [(row["key"], row["value"], row["expected"]) for row in request["changes"]]
    if request["verb"] not in list(KeyVerb):
        raise CloseConnection(f"there is no verb {request['verb']}")
    asked = KeyRequest(KeyVerb(request["verb"]), request["key"], changes, request["after"])
    try:
        answer = await session.replication.serve_keys(asked)
    except StoreError as error:
        return _refuse(error)
    rows = [{"key": key, "value": value} for key, value in answer.rows.items()]
    return {"done": answer.done, "number": answer.number, "rows": rows}


async def vote(session: Session, request: Values, version: int) -> Values:
    session.check_id(request["candidate"])
    position = LogPosition(request["last_epoch"], request["end_offset"])
    asked = VoteRequest(request["candidate"], request["epoch"], position, request["trial"], request["unclean"])
    try:
        promise, leader, elected = await session.replication.election.vote(asked)
    except StoreError as error:
        return _refuse(error)
    last_epoch, end = promise.position
    return {
        "granted": promise.granted,
        "epoch": promise.epoch,
        "leader_id": leader,
        "elected": elected,
        "last_epoch": last_epoch,
        "end_offset": end,
        "new": promise.is_new,
    }


def _refuse(error: KorvetError) -> Values:
    code, message = translate(error)
    if isinstance(error, NotCarriedOut):
        code = number(Errors.NOT_LEADER_OR_FOLLOWER)
    return {"error_code": code, "error_message": message}
