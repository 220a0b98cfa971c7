"""ListOffsets (key 2), versions 1-9: the offset that belongs to a time, exactly, or to one of the special times.

1 one offset for each partition; 2 isolation level (makes no difference without transactions); 3 nothing new; 4 leader
epochs; 5 nothing new; 6 flexible; 7 the record with the largest time (-3); 8 the earliest local record (-4: the
earliest, nothing is tiered here); 9 the last tiered record (-5: none).
"""

from typing import Final

from korvet_fast.core.eager import together
from korvet_fast.core.partition import Partition
from korvet_fast.core.types import EARLIEST, LATEST, MAX_TIMESTAMP
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.epochs import check_epoch
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values

_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_SINCE: Final = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9}  # version


async def list_offsets(session: Session, request: Values, version: int) -> Values:
    return {"topics": await together([_list_topic(session, topic, version) for topic in request["topics"]])}


async def _list_topic(session: Session, topic: Values, version: int) -> Values:
    name = topic["name"]
    rows = await together([_list(session, name, asked, version) for asked in topic["partitions"]])
    return {"name": name, "partitions": rows}


async def _list(session: Session, topic: str, asked: Values, version: int) -> Values:
    row: Values = {"partition_index": asked["partition_index"]}
    try:
        partition = session.broker.partition(topic, asked["partition_index"])
        check_epoch(partition, asked["current_leader_epoch"])
        await partition.look()
        row |= await _find(partition, asked["timestamp"], version)
    except KorvetError as error:
        row["error_code"], _ = translate(error)
    return row


async def _find(partition: Partition, timestamp: int, version: int) -> Values:
    """Offset, timestamp and leader epoch, each left out where there is none. Raises `KorvetError`."""
    if timestamp < 0 and version < _SINCE.get(timestamp, 0x7FFF):
        raise KorvetError("UNSUPPORTED_VERSION", f"version {version} has no special time {timestamp}")
    if timestamp == LATEST:
        return {"offset": partition.high_watermark, "leader_epoch": partition.leader_epoch}
    if timestamp in (EARLIEST, _EARLIEST_LOCAL):
        return {"offset": partition.start}
    if timestamp == _LATEST_TIERED:
        return {}
    found = await (partition.latest_by_time() if timestamp == MAX_TIMESTAMP else partition.find_time(timestamp))
    return {} if found is None else {"offset": found.offset, "timestamp": found.timestamp}
