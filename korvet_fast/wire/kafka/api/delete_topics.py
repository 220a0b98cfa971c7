"""DeleteTopics (key 20), versions 1-6.

1 names; 2 and 3 nothing new; 4 flexible; 5 error messages, and may be throttled by a quota, for which older versions
wait as long as they allow; 6 names or ids.
A topic named more than once, by name or by id, is refused with INVALID_REQUEST, as Kafka does.
"""

from collections.abc import Set
from functools import partial

from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.repeated import find_twice, refuse_repeated
from korvet_fast.wire.kafka.api.throttle import Throttle
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC, require, sees
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.topics import DELETE_TOPICS


async def delete_topics(session: Session, request: Values, version: int) -> Values:
    asked = request["topics"] if version >= 6 else [{"name": name} for name in request["topic_names"]]
    throttle = Throttle(session, request, waits=version < 5)
    twice = find_twice(_find_key(session, one) for one in asked)
    pace = session.pace()
    rows = []
    for one in asked:
        rows.append(await _delete(session, one, twice, throttle))
        if pace.due():
            await pace.turn()
    return throttle.tell({"responses": rows})


def _find_key(session: Session, asked: Values) -> object:
    """A key that two rows have in common if they mean the same topic."""
    if asked["name"] is not None:
        return asked["name"]
    topic = session.broker.topics.by_id(asked["topic_id"])
    return asked["topic_id"] if topic is None else topic.name


async def _delete(session: Session, asked: Values, twice: Set[object], throttle: Throttle) -> Values:
    topics = session.broker.topics
    name = asked["name"]
    row: Values = {"name": name}
    any_name = sees(session, DELETE_CLUSTER)
    try:
        if twice and _find_key(session, asked) in twice:
            raise refuse_repeated("topic")
        if name is None:
            row["topic_id"] = asked["topic_id"]
            topic = topics.by_id(asked["topic_id"])
            if topic is None:
                raise KorvetError(Errors.UNKNOWN_TOPIC_ID)
            if not any_name:
                require(session, DELETE_TOPICS, DESCRIBE_TOPIC, topic.name)  # its name is not told else
        else:
            if not any_name:
                require(session, DELETE_TOPICS, DESCRIBE_TOPIC, name)
            topic = topics.get(name)
            if topic is None:
                raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        row |= {"name": topic.name, "topic_id": topic.id}
        require(session, DELETE_TOPICS, DELETE_TOPIC, topic.name, by_cluster=True)
        many = len(topic.partitions)
        await throttle.change(partial(topics.delete, topic, session.changer))
        throttle.own.count(many)
    except KorvetError as error:
        row["error_code"], row["error_message"] = translate(error)
    return row
