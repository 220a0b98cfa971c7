"""PRODUCE (0) and MULTIPRODUCE (3): messages are appended, and nothing is ever answered.

A message that is too large drops its set, and the connection stays open; whatever else is wrong ends the request and
closes the connection. Sets before it in the same request stay stored.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection
from typing import Any, Final

from korvet_fast.core.acls.binding import Operation
from korvet_fast.core.partition.legacy_partition import TOGETHER
from korvet_fast.core.produce.messages import check_messages
from korvet_fast.errors import CodecError, Errors, KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.legacy.body import Malformed, ProduceBody
from korvet_fast.wire.legacy.creation import create_topic
from korvet_fast.wire.legacy.session import Session
from korvet_fast.wire.legacy.topics import (
    count_partitions,
    find_topic,
    has_partition,
    is_legal,
    leader_partition,
    refresh_leadership,
)

_ANY: Final = -1  # a partition
_MOST: Final = 1000  # appends of a request that are waited for at a time: to wait for 30,000 holds the loop


async def produce(session: Session, bodies: list[ProduceBody], let_next: Callable[[], None]) -> Reply:
    """Append the sets, then let the next request begin; ends when they are durable."""
    waiting: dict[asyncio.Future[Any], None] = {}  # one flush, and so one future, answers many appends
    refusal = failure = None
    pace = session.pace()
    try:
        for body in bodies:
            waiting |= dict.fromkeys(await _append(session, body))
            if len(waiting) >= _MOST:
                failure = await _settle(waiting)
                if failure is not None:
                    break
                waiting = {}
            if pace.due():
                await pace.turn()
    except Malformed as error:
        refusal = session.refuse(str(error))
    except KorvetError as error:
        refusal = session.refuse(f"messages for {body.topic!r} were not stored: {error.detail}")
    session.order.note(waiting)
    let_next()
    failure = failure or await _settle(waiting)
    if refusal is None and failure is not None:
        refusal = session.refuse(f"messages were not stored: {failure}")
    if refusal is not None:
        raise refusal
    return []


async def _settle(appended: Collection["asyncio.Future[Any]"]) -> BaseException | None:
    """Wait until all of these are durable, or have failed: with this, the first of them."""
    if appended:
        await asyncio.wait(appended)
    return next(filter(None, (one.exception() for one in appended)), None)


async def _append(session: Session, body: ProduceBody) -> list["asyncio.Future[Any]"]:
    """Append one set. Raises `Malformed` and `KorvetError` for what closes the connection."""
    name, index, messages = body
    if not is_legal(name):
        raise Malformed(f"{name!r} is no topic's name")
    if not session.may("PRODUCE", Operation.WRITE, name):
        raise KorvetError(Errors.TOPIC_AUTHORIZATION_FAILED, f"no ACL lets {session.principal} write to it")
    topic = await find_topic(session, name)
    many = count_partitions(session, name) if topic is None else len(topic.partitions)
    if topic is None and (index == _ANY or has_partition(session, name, None, index)):
        topic = await create_topic(session, name, many)
        many = len(topic.partitions)  # another client may have made it meanwhile
    if index == _ANY and many:
        index = secrets.randbelow(many)
    if topic is None or not has_partition(session, name, topic, index):
        raise Malformed(f"there is no partition {index} of topic {name!r} in the format of 0.7")
    try:
        batches = await check_messages(session, messages, topic.config.max_message_bytes)
    except CodecError as error:
        if error.code != "OVERSIZE":
            raise Malformed(f"messages for {name!r} are malformed: {error}") from None
        session.broker.log.warn("large message", f"messages for {name!r} of {session.peer} were dropped: {error}")
        return []
    if not batches:
        return []
    await refresh_leadership(session, topic, index)
    partition, now = leader_partition(session, name, index), session.broker.now()
    if len(batches) > TOGETHER:
        return await partition.append_large_set(batches, now, session.pace())
    return partition.append_messages(batches, now)
