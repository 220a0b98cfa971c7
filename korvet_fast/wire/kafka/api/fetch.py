"""Fetch (key 1), versions 4-12: record batches as they lie in the log, waiting for more if there are too few.

4 isolation level; 5 log start offset; 6 nothing new; 7 sessions; 8 nothing new; 9 leader epoch checks; 10 zstd;
11 racks: a follower answers too, and the leader may name one to read from; 12 flexible. There are no transactions, so
both isolation levels read up to the high watermark.

A limit of a partition below 0 counts as 0; Kafka answers UNKNOWN_SERVER_ERROR. With max_bytes 0 no records are given;
Kafka gives one batch. A partition named more than once is refused with INVALID_REQUEST; Kafka answers the last row and
forgets the others.
Missing on purpose: fetch sessions (every answer says session 0, so that clients name all partitions each time), replica
fetches (refused), diverging epochs (only replicas ask).
"""

from functools import partial
from operator import itemgetter
from typing import Final

from korvet_fast.core.fetch import service
from korvet_fast.core.fetch.service import FetchPosition, PartitionFetch
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.repeated import find_refusal
from korvet_fast.wire.kafka.errors import FETCH_SESSION_ID_NOT_FOUND, translate
from korvet_fast.wire.kafka.session import Session, Values

_CLOSE_SESSION: Final = -1  # session epoch: the last fetch of a session
_LIMITS: Final = itemgetter("max_bytes", "min_bytes", "max_wait_ms")
_POSITION: Final = itemgetter("partition", "fetch_offset", "partition_max_bytes", "current_leader_epoch")


async def fetch(session: Session, request: Values, version: int) -> Values:
    if request["session_id"] and request["session_epoch"] != _CLOSE_SESSION:
        return {"error_code": FETCH_SESSION_ID_NOT_FOUND}
    topics = request["topics"]
    aborted: list[Values] | None = [] if request["isolation_level"] else None
    max_bytes, min_bytes, max_wait_ms = _LIMITS(request)
    rack = request["rack_id"] if version > 10 else None
    if len(topics) == 1 and len(rows := topics[0]["partitions"]) == 1 and request["replica_id"] < 0:
        name = topics[0]["topic"]
        part = await service.fetch_one(session, name, _POSITION(rows[0]), max_bytes, min_bytes, max_wait_ms, rack)
        return {"responses": [{"topic": name, "partitions": [_translate(aborted, part)]}]}
    replica = request["replica_id"] >= 0
    refuse = _refuse_replica if replica else find_refusal(topics, "topic", "partitions", "partition")
    pace = session.pace()
    positions = await pace.map(_positions, topics)
    results = await service.fetch(session, positions, max_bytes, min_bytes, max_wait_ms, refuse, rack)
    responses = [
        {"topic": topic["topic"], "partitions": await pace.map(partial(_translate, aborted), parts)}
        for topic, parts in zip(topics, results, strict=True)
    ]
    for held in (*(rows for _, rows in positions), *results, *(topic["partitions"] for topic in topics)):
        await pace.discard(held)
    for done in (positions, results, topics):
        await pace.discard(done)
    return {"responses": responses}


def _positions(topic: Values) -> tuple[str, list[FetchPosition]]:
    """The requested partitions of one topic."""
    return topic["topic"], list(map(_POSITION, topic["partitions"]))


def _translate(aborted: list[Values] | None, part: PartitionFetch) -> Values:
    """A row of the answer."""
    row: Values = {
        "partition_index": part.index,
        "high_watermark": part.high_watermark,
        "last_stable_offset": part.high_watermark,
        "log_start_offset": part.log_start,
        "records": part.records,
    }
    if part.partition is not None:
        row["aborted_transactions"] = aborted
    elif part.preferred_replica >= 0:
        row["preferred_read_replica"] = part.preferred_replica
    if part.error is not None:
        row["error_code"], _ = translate(part.error)
    return row


def _refuse_replica(_: str, __: int) -> KorvetError:
    return KorvetError(Errors.INVALID_REQUEST, "this broker has no replicas, so none may fetch")
