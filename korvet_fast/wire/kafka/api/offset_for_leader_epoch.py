"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ended, so that a client sees whether records were lost.

2 checks the client's present epoch; 3 names the replica (a consumer is not one); 4 flexible (KIP-320).
"""

from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.epochs import check_epoch
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values


async def offset_for_leader_epoch(session: Session, request: Values, version: int) -> Values:
    topics = []
    for topic in request["topics"]:
        rows = []
        for asked in topic["partitions"]:
            row: Values = {"partition": asked["partition"]}
            rows.append(row)
            try:
                partition = session.broker.partition(topic["topic"], asked["partition"])
                check_epoch(partition, asked["current_leader_epoch"])
                if asked["leader_epoch"] > partition.leader_epoch:
                    await partition.confirm()
                row["leader_epoch"], row["end_offset"] = partition.epoch_end(asked["leader_epoch"])
            except KorvetError as error:
                row["error_code"], _ = translate(error)
        topics.append({"topic": topic["topic"], "partitions": rows})
    return {"topics": topics}
