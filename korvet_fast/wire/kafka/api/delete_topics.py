"""DeleteTopics (key 20), versions 1-6.

1 names; 2 and 3 nothing new; 4 flexible; 5 error messages; 6 names or ids. The time allowed is not used: the topic is
gone when the answer goes.
"""

from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values


async def delete_topics(session: Session, request: Values, version: int) -> Values:
    asked = request["topics"] if version >= 6 else [{"name": name} for name in request["topic_names"]]
    return {"responses": [await _delete(session, one) for one in asked]}


async def _delete(session: Session, asked: Values) -> Values:
    topics = session.broker.topics
    name = asked["name"]
    row: Values = {"name": name}
    try:
        if name is None:
            row["topic_id"] = asked["topic_id"]
            topic = topics.by_id(asked["topic_id"])
            if topic is None:
                raise KorvetError("UNKNOWN_TOPIC_ID")
        else:
            topic = topics.get(name)
            if topic is None:
                raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
        row |= {"name": topic.name, "topic_id": topic.id}
        await topics.delete(topic)
    except KorvetError as error:
        row["error_code"], row["error_message"] = translate(error)
    return row
