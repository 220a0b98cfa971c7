"""ConsumerGroupHeartbeat (key 68), versions 0-1: everything a member of the consumer protocol says (KIP-848).

Epoch 0 joins, -1 leaves, -2 leaves for a while (static members). 1 a regular expression, and ids made by clients.
"""

from uuid import uuid4

from korvet_fast.core.groups.consumer.members import PAUSES, Beat, Part, Parts
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.faults import CODES, number, translate
from korvet_fast.wire.kafka.session import Session, Values


async def consumer_group_heartbeat(session: Session, request: Values, version: int) -> Values:
    consumers = session.broker.groups.consumers
    if why := _find_mistake(request, version):
        return {"error_code": CODES["INVALID_REQUEST"], "error_message": why}
    rebalance_ms = request["rebalance_timeout_ms"]
    names = request["subscribed_topic_names"]
    ask = Beat(
        member_id=request["member_id"],
        epoch=request["member_epoch"],
        instance_id=request["instance_id"],
        rack_id=request["rack_id"],
        rebalance=rebalance_ms / 1000 if rebalance_ms >= 0 else None,
        names=tuple(names) if names is not None else None,
        regex=request["subscribed_topic_regex"],
        assignor=request["server_assignor"],
        owned=_read_parts(request["topic_partitions"]),
        client_id=request["client_id"] or "",
        client_host=f"/{session.peer}",  # as Kafka writes it
        fresh_id=str(uuid4()),
    )
    try:
        answer = await consumers.beat(request["group_id"], ask)
    except KorvetError as error:
        code, why = translate(error)
        return {"error_code": code, "error_message": why}
    if answer.fault:
        return {"error_code": number(answer.fault), "error_message": translate(KorvetError(answer.fault))[1]}
    return {
        "member_id": answer.member_id,
        "member_epoch": answer.epoch,
        "heartbeat_interval_ms": consumers.interval_ms if answer.epoch >= 0 else 0,
        "assignment": {"topic_partitions": _tell_parts(answer.assigned)} if answer.assigned is not None else None,
    }


def _find_mistake(request: Values, version: int) -> str:
    """What contradicts itself in a request; "" if nothing does."""
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


def _read_parts(rows: list[Values] | None) -> Parts | None:
    if rows is None:
        return None
    return frozenset(Part(row["topic_id"], index) for row in rows for index in row["partitions"])


def _tell_parts(parts: Parts) -> list[Values]:
    topics: dict[bytes, list[int]] = {}
    for topic, index in sorted(parts):
        topics.setdefault(topic, []).append(index)
    return [{"topic_id": topic, "partitions": indexes} for topic, indexes in topics.items()]
