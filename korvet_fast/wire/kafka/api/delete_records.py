"""DeleteRecords (key 21), versions 0-2: take records away from the front of partitions.

0 an offset for each partition (-1: everything up to the high watermark); 1 nothing new; 2 flexible.
The time allowed is not used: the work is short and cannot be stopped half way.
A partition named more than once is refused with INVALID_REQUEST; Kafka takes the last row and forgets the others.
"""

from collections.abc import Set

from korvet_fast.core.eager import gather_paced
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.repeated import find_repeated, refuse_repeated
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values


async def delete_records(session: Session, request: Values, version: int) -> Values:
    twice = find_repeated(request["topics"], "name", "partitions", "partition_index")
    asked = ((topic["name"], row) for topic in request["topics"] for row in topic["partitions"])
    rows = iter(await gather_paced(asked, lambda one: _delete(session, *one, twice), session.pace()))
    topics = [
        {"name": topic["name"], "partitions": [next(rows) for _ in topic["partitions"]]} for topic in request["topics"]
    ]
    return {"topics": topics}


async def _delete(session: Session, topic: str, asked: Values, twice: Set[tuple[str, int]]) -> Values:
    row: Values = {"partition_index": asked["partition_index"], "low_watermark": -1}
    try:
        if twice and (topic, asked["partition_index"]) in twice:
            raise refuse_repeated("partition")
        partition = session.broker.partition(topic, asked["partition_index"])
        row["low_watermark"] = await partition.delete_records(asked["offset"])
    except KorvetError as error:
        row["error_code"], _ = translate(error)
    return row
