"""CreatePartitions (key 37), versions 0-3: more partitions for a topic.

0 total, assignments, validate only; 1 nothing new; 2 flexible; 3 may be throttled by a quota, for which older versions
wait as long as they allow. Assignments, one for each new partition, are honoured where they name this broker alone.
A topic named more than once is refused with INVALID_REQUEST, as Kafka does.
"""

from functools import partial

from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.assignments import check_assignment
from korvet_fast.wire.kafka.api.repeated import find_twice, refuse_repeated
from korvet_fast.wire.kafka.api.throttle import Throttle
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values


async def create_partitions(session: Session, request: Values, version: int) -> Values:
    twice = find_twice(topic["name"] for topic in request["topics"])
    throttle = Throttle(session, request, waits=version < 3)
    pace = session.pace()
    rows = []
    for asked in request["topics"]:
        row: Values = {"name": asked["name"]}
        rows.append(row)
        try:
            if asked["name"] in twice:
                raise refuse_repeated("topic")
            only = request["validate_only"]
            more = await throttle.change(partial(_grow, session, asked, validate_only=only))
            throttle.own.count(0 if only else more)
        except KorvetError as error:
            row["error_code"], row["error_message"] = translate(error)
        if pace.due():
            await pace.turn()
    return throttle.tell({"results": rows})


async def _grow(session: Session, asked: Values, *, validate_only: bool) -> int:
    """Returns how many partitions are new."""
    topics, name, total = session.broker.topics, asked["name"], asked["count"]
    topic = topics.get(name)
    if topic is None:
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    assignments = asked["assignments"]
    more: int = total - len(topic.partitions)
    if assignments is not None:
        if more > 0 and len(assignments) != more:
            raise KorvetError(
                Errors.INVALID_REPLICA_ASSIGNMENT, f"{len(assignments)} assignments for {more} new partitions"
            )
        for assignment in assignments:
            check_assignment(assignment["broker_ids"], session.broker.cluster)
    await topics.grow(topic, total, session.changer, validate_only=validate_only)
    return more
