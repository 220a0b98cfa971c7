"""OffsetFetch (key 9), versions 1-9: what groups have committed; -1 where there is nothing.

2 null asks for all partitions, and the group has an error of its own; 3 and 4 nothing new; 5 leader epochs; 6 flexible;
7 only stable offsets (all are: there are no transactions); 8 several groups; 9 who asks, with its epoch.
"""

from korvet_fast.core.groups.documents import Commit, Place
from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values


async def offset_fetch(session: Session, request: Values, version: int) -> Values:
    if version >= 8:
        groups = request["groups"]
        return {"groups": [{"group_id": one["group_id"], **await _fetch(session, one, version)} for one in groups]}
    return await _fetch(session, request, version)


async def _fetch(session: Session, asked: Values, version: int) -> Values:
    topics = asked["topics"]
    places = None
    if topics is not None:
        places = [Place(topic["name"], index) for topic in topics for index in topic["partition_indexes"]]
    who = (asked["member_id"], asked["member_epoch"]) if version >= 9 else (None, -1)
    fault, found = await session.broker.groups.fetch(asked["group_id"], places, *who)
    error = number(fault)
    if error and version >= 2:
        places = []
    by_topic: dict[str, list[Values]] = {}
    for place in sorted(found) if places is None else places:
        by_topic.setdefault(place.topic, []).append(_tell(place, found.get(place), error))
    return {
        "error_code": error,
        "topics": [{"name": topic, "partitions": rows} for topic, rows in by_topic.items()],
    }


def _tell(place: Place, commit: Commit | None, error: int) -> Values:
    row: Values = {"partition_index": place.partition, "error_code": error, "committed_offset": -1, "metadata": ""}
    if commit is not None:
        row["committed_offset"] = commit.offset
        row["committed_leader_epoch"] = commit.leader_epoch
        row["metadata"] = commit.metadata
    return row
