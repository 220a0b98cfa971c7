"""DeleteRecords (key 21), versions 0-2: take records away from the front of partitions.

0 an offset for each partition (-1: everything up to the high watermark); 1 nothing new; 2 flexible.
The time allowed is not used: the work is short and cannot be stopped half way.
"""

from korvet_fast.core.eager import together
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values


async def delete_records(session: Session, request: Values, version: int) -> Values:
    return {"topics": await together([_delete_from(session, topic) for topic in request["topics"]])}


async def _delete_from(session: Session, topic: Values) -> Values:
    name = topic["name"]
    return {
        "name": name,
        "partitions": await together([_delete(session, name, asked) for asked in topic["partitions"]]),
    }


async def _delete(session: Session, topic: str, asked: Values) -> Values:
    row: Values = {"partition_index": asked["partition_index"], "low_watermark": -1}
    try:
        partition = session.broker.partition(topic, asked["partition_index"])
        row["low_watermark"] = await partition.delete_records(asked["offset"])
    except KorvetError as error:
        row["error_code"], _ = translate(error)
    return row
