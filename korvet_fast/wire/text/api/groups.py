"""JOIN, SYNC, HEARTBEAT and LEAVE: `group topic consumer generation`, and the partitions that a member has."""

from korvet_fast.core.groups.budget import LONGEST
from korvet_fast.core.groups.text.group import TextJoin, TextResult
from korvet_fast.wire.text.api.topics import find_topic
from korvet_fast.wire.text.arguments import Arguments, BadArguments
from korvet_fast.wire.text.errors import translate
from korvet_fast.wire.text.session import Payload, RequestError, Session


async def join(session: Session, arguments: Arguments) -> Payload:
    group, name, consumer = _read_names(arguments)
    topic = await find_topic(session, name)
    assignor = arguments.get("assignor")
    request = TextJoin(consumer, name, len(topic.partitions), None if assignor is None else str(assignor), session.peer)
    return _tell(await session.broker.groups.text.join(group, request))


async def sync(session: Session, arguments: Arguments) -> Payload:
    return _tell(_hear(session, arguments))


async def heartbeat(session: Session, arguments: Arguments) -> Payload:
    check(_hear(session, arguments))
    return [b"heartbeat=ok"]


async def leave(session: Session, arguments: Arguments) -> Payload:
    group, topic, consumer = _read_names(arguments)
    check(await session.broker.groups.text.leave(group, topic, consumer, int(arguments["generation"])))
    return [b"left=true"]


def check(result: TextResult) -> None:
    """Raises `RequestError` for an answer that is an error."""
    if result.error:
        raise RequestError(*translate(result.error, result.reason))


def _hear(session: Session, arguments: Arguments) -> TextResult:
    group, topic, consumer = _read_names(arguments)
    return session.broker.groups.text.heartbeat(group, topic, consumer, int(arguments["generation"]))


def _read_names(arguments: Arguments) -> tuple[str, str, str]:
    group, topic, consumer = str(arguments["group"]), str(arguments["topic"]), str(arguments["consumer"])
    if max(len(group), len(consumer)) > LONGEST:
        raise BadArguments(f"the names of groups and consumers have 1 to {LONGEST} characters")
    return group, topic, consumer


def _tell(result: TextResult) -> Payload:
    check(result)
    assigned = ",".join(map(str, result.assigned))
    return [f"generation={result.generation} assigned=[{assigned}]".encode()]
