"""The topic that a line names."""

from korvet_fast.core.topics.topic import Topic, check_name, may_auto_create
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.text.session import Session


async def find_topic(session: Session, name: str, *, create: bool = False) -> Topic:
    """A topic, as this broker knows it or another one has just made it. `create`: make it, if that is allowed.

    Raises `KorvetError`.
    """
    topics = session.broker.topics
    topic = topics.get(name)
    if topic is not None:
        return topic
    check_name(name)
    topic = await topics.find(name, session.changer)
    if topic is None:
        # Also for a peer that has closed its half: `nc` does so behind the last line that was piped into it.
        if not (create and may_auto_create(session.broker.settings, name)):
            raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        session.check_creation("PRODUCE", name)
        topic = await topics.auto_create(name, session.changer)
    return topic
