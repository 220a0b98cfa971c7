"""DescribeQuorum (key 55), versions 0-2: who keeps the cluster's metadata.

0 leader, voters, their offsets; 1 times, which are not measured here; 2 directories and listeners, which these voters
do not have. Kafka calls the log `__cluster_metadata`, partition 0; others are not known. Without copies, the broker
that is named as controller is the one voter, and no log has offsets to tell (-1). Of brokers that copy
files, the one that leads the log knows how far the others are; the others tell what they know themselves.
"""

from typing import Final

from korvet_fast.core.cluster.metadata_quorum import MetadataQuorum
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.session import Session, Values

_LOG: Final = "__cluster_metadata"


async def describe_quorum(session: Session, request: Values, version: int) -> Values:
    replication, controller = session.broker.replication, session.broker.cluster.controller
    quorum = replication.describe_quorum() if replication is not None else MetadataQuorum.of_one(controller)
    described: Values = {
        "leader_id": quorum.leader,
        "leader_epoch": quorum.epoch,
        "high_watermark": quorum.high_watermark,
        "current_voters": [{"replica_id": voter, "log_end_offset": end} for voter, end in sorted(quorum.ends.items())],
    }
    unknown: Values = {"error_code": CODES[Errors.UNKNOWN_TOPIC_OR_PARTITION], "leader_id": -1, "leader_epoch": -1}
    topics = []
    for topic in request["topics"]:
        rows = []
        for row in topic["partitions"]:
            index = row["partition_index"]
            found = described if (topic["topic_name"], index) == (_LOG, 0) else unknown
            rows.append(found | {"partition_index": index})
        topics.append({"topic_name": topic["topic_name"], "partitions": rows})
    return {"topics": topics}
