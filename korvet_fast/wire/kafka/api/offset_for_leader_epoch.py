"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ended, so that a client sees whether records were lost.

2 checks the client's present epoch; 3 names the replica (a consumer is not one); 4 flexible (KIP-320).
A partition named more than once is answered each time, as Kafka does.
"""

from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values


async def offset_for_leader_epoch(session: Session, request: Values, version: int) -> Values:
    pace = session.pace()
    topics = []
    for topic in request["topics"]:
        rows = []
        for asked in topic["partitions"]:
            row: Values = {"partition": asked["partition"]}
            rows.append(row)
            try:
                partition = session.broker.partition(topic["topic"], asked["partition"])
                partition.check_epoch(asked["current_leader_epoch"])
                if asked["leader_epoch"] > partition.leadership.epoch:
                    await partition.leader.verify_leadership()
                row["leader_epoch"], row["end_offset"] = partition.find_epoch_end(asked["leader_epoch"])
            except KorvetError as error:
                row["error_code"], _ = translate(error)
            if pace.due():
                await pace.turn()
        topics.append({"topic": topic["topic"], "partitions": rows})
    return {"topics": topics}
