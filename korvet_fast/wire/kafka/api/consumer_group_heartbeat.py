"""ConsumerGroupHeartbeat (key 68), versions 0-1: the one request of a member of the consumer protocol (KIP-848).

Epoch 0 joins, -1 leaves, -2 leaves for a while (static members). 1 a regular expression, and ids made by clients.
"""

from uuid import uuid4

from korvet_fast.core.groups.budget import LONGEST
from korvet_fast.core.groups.consumer.members import PAUSES, HeartbeatRequest
from korvet_fast.core.groups.consumer.partition_set import NamedPartitions, Partitions
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.errors import CODES, number, translate
from korvet_fast.wire.kafka.rights import DESCRIBE_TOPIC, require
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.consumer_groups import CONSUMER_GROUP_HEARTBEAT


async def consumer_group_heartbeat(session: Session, request: Values, version: int) -> Values:
    consumer = session.broker.groups.consumer
    if why := _find_mistake(request, version):
        return {"error_code": CODES[Errors.INVALID_REQUEST], "error_message": why}
    rebalance_ms = request["rebalance_timeout_ms"]
    names = request["subscribed_topic_names"]
    heartbeat = HeartbeatRequest(
        member_id=request["member_id"],
        epoch=request["member_epoch"],
        instance_id=request["instance_id"],
        rack_id=request["rack_id"],
        rebalance_timeout=rebalance_ms / 1000 if rebalance_ms >= 0 else None,
        names=tuple(names) if names is not None else None,
        regex=request["subscribed_topic_regex"],
        assignor=request["server_assignor"],
        owned=_read_partitions(request["topic_partitions"]),
        client_id=(request["client_id"] or "")[:LONGEST],
        client_host=f"/{session.peer}",  # as Kafka writes it
        new_member_id="" if request["member_id"] else str(uuid4()),
    )
    try:
        for name in names or ():
            require(session, CONSUMER_GROUP_HEARTBEAT, DESCRIBE_TOPIC, name)
        answer = await consumer.heartbeat(request["group_id"], heartbeat, session.offload, session.find_permissions())
    except KorvetError as error:
        code, why = translate(error)
        return {"error_code": code, "error_message": why}
    if answer.error:
        return {"error_code": number(answer.error), "error_message": translate(KorvetError(answer.error))[1]}
    return {
        "member_id": answer.member_id,
        "member_epoch": answer.epoch,
        "heartbeat_interval_ms": consumer.heartbeat_interval_ms if answer.epoch >= 0 else 0,
        "assignment": {"topic_partitions": _tell_partitions(answer.assigned)} if answer.assigned is not None else None,
    }


def _find_mistake(request: Values, version: int) -> str:
    """The contradiction in a request; "" if there is none."""
    epoch, joins = request["member_epoch"], request["member_epoch"] == 0
    wants = request["subscribed_topic_names"] is not None or request["subscribed_topic_regex"] is not None
    rules = (
        (not request["group_id"], "GroupId must not be empty"),
        (not request["member_id"] and (version >= 1 or not joins), "MemberId must not be empty"),
        (request["instance_id"] == "", "InstanceId must not be empty"),
        (request["rack_id"] == "", "RackId must not be empty"),
        (epoch < PAUSES, "MemberEpoch is below -2"),
        (epoch == PAUSES and request["instance_id"] is None, "InstanceId must be given to leave for a while"),
        (joins and request["rebalance_timeout_ms"] < 0, "RebalanceTimeoutMs must be given to join"),
        (joins and request["topic_partitions"] != [], "TopicPartitions must be given, and empty, to join"),
        (joins and not wants, "SubscribedTopicNames or SubscribedTopicRegex must be given to join"),
    )
    return next((why for broken, why in rules if broken), "")


def _read_partitions(rows: list[Values] | None) -> NamedPartitions | None:
    return None if rows is None else NamedPartitions([(row["topic_id"], row["partitions"]) for row in rows])


def _tell_partitions(partitions: Partitions) -> list[Values]:
    return [{"topic_id": topic, "partitions": indexes} for topic, indexes in partitions.list_rows()]
