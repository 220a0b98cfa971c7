"""ListOffsets (key 2), versions 1-9: the offset that belongs to a time, exactly, or to one of the special times.

1 one offset for each partition; 2 isolation level (makes no difference without transactions); 3 nothing new; 4 leader
epochs (-1: not known); 5 OFFSET_NOT_AVAILABLE; 6 flexible; 7 the record with the largest time (-3); 8 the earliest
local record (-4: the earliest, nothing is tiered here); 9 the last tiered record (-5: none).

A partition named more than once is refused with INVALID_REQUEST, as Kafka does. Batches are searched for a time beside
the loop, a few at a time for each connection.
Replica -2, Kafka's debugging consumer, is told where this broker's own copy begins and ends, whoever leads.
"""

from collections.abc import Collection
from typing import Final

from korvet_fast.core.eager import gather_paced
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.replication.replication import Replication
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.types import EARLIEST, LATEST, MAX_TIMESTAMP
from korvet_fast.wire.kafka.api.repeated import find_repeated, refuse_repeated
from korvet_fast.wire.kafka.errors import number, translate
from korvet_fast.wire.kafka.session import Session, Values

_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_DEBUGGING: Final = -2  # a replica_id
_FRESH: Final = 0.1  # seconds: a client that asks right after another program's XADD must find the record
_SINCE: Final = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9}  # version


async def list_offsets(session: Session, request: Values, version: int) -> Values:
    topics = request["topics"]
    if request["replica_id"] == _DEBUGGING and session.broker.replication is not None:
        return {"topics": [_list_copies(session.broker.replication, topic) for topic in topics]}
    if len(topics) == 1 and len(topics[0]["partitions"]) == 1:
        name, (row,) = topics[0]["name"], topics[0]["partitions"]
        return {"topics": [{"name": name, "partitions": [await _list(session, name, row, (), version)]}]}
    twice = find_repeated(topics, "name", "partitions", "partition_index")
    asked = [(topic["name"], row) for topic in topics for row in topic["partitions"]]
    rows = iter(await gather_paced(asked, lambda one: _list(session, *one, twice, version), session.pace()))
    return {
        "topics": [{"name": topic["name"], "partitions": [next(rows) for _ in topic["partitions"]]} for topic in topics]
    }


def _list_copies(replication: Replication, topic: Values) -> Values:
    rows = []
    for asked in topic["partitions"]:
        row: Values = {"partition_index": asked["partition_index"]}
        replica = replication.replicas.logs.get(f"{topic['name']}:{asked['partition_index']}")
        if replica is None:
            row["error_code"] = number(Errors.NOT_LEADER_OR_FOLLOWER)
        elif asked["timestamp"] not in (LATEST, EARLIEST):
            row["error_code"] = number(Errors.INVALID_REQUEST)
        else:
            row["offset"] = replica.end if asked["timestamp"] == LATEST else replica.start
        rows.append(row)
    return {"name": topic["name"], "partitions": rows}


async def _list(
    session: Session, topic: str, asked: Values, twice: Collection[tuple[str, int]], version: int
) -> Values:
    row: Values = {"partition_index": asked["partition_index"]}
    try:
        if twice and (topic, asked["partition_index"]) in twice:
            raise refuse_repeated("partition")
        partition = session.broker.partition(topic, asked["partition_index"])
        partition.check_epoch(asked["current_leader_epoch"])
        await partition.log.refresh_bounds(_FRESH)
        row |= await _find(session, partition, asked["timestamp"], version)
    except KorvetError as error:
        row["error_code"], _ = translate(error)
    return row


async def _find(session: Session, partition: Partition, timestamp: int, version: int) -> Values:
    """Offset, timestamp and leader epoch, each left out where there is none. Raises `KorvetError`."""
    if timestamp < 0 and version < _SINCE.get(timestamp, 0x7FFF):
        raise KorvetError(Errors.UNSUPPORTED_VERSION, f"version {version} has no special time {timestamp}")
    if timestamp in (LATEST, MAX_TIMESTAMP):
        _check_caught_up(partition, version)
    if timestamp == LATEST:
        return {"offset": partition.high_watermark.offset, "leader_epoch": partition.leadership.epoch}
    if timestamp in (EARLIEST, _EARLIEST_LOCAL):
        start = partition.log.start
        return {"offset": start, "leader_epoch": partition.find_epoch(start)}
    if timestamp == _LATEST_TIERED:
        return {}
    async with session.searches:
        if timestamp == MAX_TIMESTAMP:
            found = await partition.log.find_latest(session.offload)
        else:
            found = await partition.log.find_time(timestamp, session.offload)
    if found is None:
        _check_caught_up(partition, version)
        return {}
    epoch = partition.find_epoch(found.offset)
    return {"offset": found.offset, "timestamp": found.timestamp, "leader_epoch": epoch}


def _check_caught_up(partition: Partition, version: int) -> None:
    """Refuse while the end may lie below one that clients were told before (KIP-207). Raises `KorvetError`."""
    if partition.is_catching_up:
        error = Errors.OFFSET_NOT_AVAILABLE if version >= 5 else Errors.LEADER_NOT_AVAILABLE
        raise KorvetError(error, f"it is not known yet how far {partition.name} is durable")
