"""FETCH (1) and MULTIFETCH (2): bytes of the log from a position on, up to the end of its segment. Nothing waits.

An answer of MULTIFETCH has no more bytes than there is memory for: positions named last may get fewer than they ask.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Final

from korvet_fast.core.acls.binding import Operation
from korvet_fast.core.fair_queue import Pace
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.types import Buffer
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.legacy.body import FetchBody
from korvet_fast.wire.legacy.session import Session
from korvet_fast.wire.legacy.topics import has_partition, is_legal, leader_partition

NONE, OFFSET_OUT_OF_RANGE, WRONG_PARTITION, INVALID_FETCH_SIZE, UNKNOWN = 0, 1, 3, 4, -1
HEAD: Final = Struct(">ih")  # size, of what follows it; error
_LITTLE: Final = 64 * 1024  # bytes of an answer that nobody has to wait for
_SHORT: Final = 4 * 1024  # bytes of an answer that is copied to those before it


async def fetch(session: Session, bodies: list[FetchBody], _: Callable[[], None]) -> Reply:
    (body,) = bodies
    pace = session.pace()
    unknown = await _refresh_topics(session, bodies, pace)
    room = await _reserve(session, bodies, pace)
    try:
        return await _answer(session, body, room, unknown)
    finally:
        _release(session, room)


async def multi_fetch(session: Session, bodies: list[FetchBody], _: Callable[[], None]) -> Reply:
    pace = session.pace()
    unknown = await _refresh_topics(session, bodies, pace)
    left = room = await _reserve(session, bodies, pace)
    parts: Reply = []
    short = bytearray()  # answers that follow each other, in one piece: 30,000 pieces would hold the loop for long
    try:
        for body in bodies:
            answer = await _answer(session, body, left, unknown)
            size = sum(map(len, answer))
            left -= size - HEAD.size
            if size <= _SHORT:
                for part in answer:
                    short += part
            else:
                parts += [short, *answer]
                short = bytearray()
            if pace.due():
                await pace.turn()
    finally:
        _release(session, room)
    parts.append(short)
    return [HEAD.pack(HEAD.size - 4 + sum(map(len, parts)), NONE), *parts]


async def _refresh_topics(session: Session, bodies: list[FetchBody], pace: Pace) -> KorvetError | None:
    """Learn, once for all positions, of topics that have just been made, and of leaders that have just changed.

    Returns the error, if that fails, of positions that this broker does not lead.
    """
    if all(await pace.map(partial(_is_settled, session), bodies)):
        return None
    try:
        await session.broker.topics.refresh(session.changer)
    except KorvetError as error:
        return error
    return None


def _is_settled(session: Session, body: FetchBody) -> bool:
    """Whether nothing that other brokers have just changed would make another answer of this one."""
    topic = session.broker.topics.get(body.topic)
    if topic is None or not has_partition(session, body.topic, topic, body.partition):
        return topic is not None
    return topic.partitions[body.partition].leadership.leads


async def _reserve(session: Session, bodies: list[FetchBody], pace: Pace) -> int:
    """How many bytes of messages the answer may have; they are held until `_release`."""
    await session.order.wait_durable()
    most = session.broker.settings.number
    wanted = sum(await pace.map(partial(_count_available, session), bodies))
    room = min(wanted, most("fetch.max.bytes"), most("queued.max.request.bytes") // 4)
    if room > _LITTLE and session.client is not None and (granted := session.client.reserve(room)) is not None:
        await granted
    return room


def _count_available(session: Session, body: FetchBody) -> int:
    """How many bytes there are at this position now, as far as they are asked for."""
    name, index, offset, size = body
    topic = session.broker.topics.get(name)
    if topic is None or not has_partition(session, name, topic, index):
        return 0
    return max(min(size, topic.partitions[index].high_watermark.offset - offset), 0)


def _release(session: Session, room: int) -> None:
    if room > _LITTLE and session.client is not None:
        session.client.release(room)


async def _answer(session: Session, body: FetchBody, room: int, unknown: KorvetError | None) -> Reply:
    """A whole answer to one position."""
    try:
        error, data = await _read(session, body, room, unknown)
    except KorvetError as failure:
        session.broker.log.warn("fetch", f"a FETCH of {session.peer} from {body.topic!r} failed: {failure.detail}")
        error, data = UNKNOWN, []
    return [HEAD.pack(HEAD.size - 4 + sum(map(len, data)), error), *data]


async def _read(session: Session, body: FetchBody, room: int, unknown: KorvetError | None) -> tuple[int, list[Buffer]]:
    """The error, and the bytes. Raises `KorvetError`."""
    name, index, offset, size = body
    if not is_legal(name):
        return UNKNOWN, []
    if not session.may("FETCH", Operation.READ, name):
        raise KorvetError(Errors.TOPIC_AUTHORIZATION_FAILED, f"no ACL lets {session.principal} read it")
    topic = session.broker.topics.get(name)
    if topic is None and unknown is not None:
        raise unknown
    if not has_partition(session, name, topic, index):
        return WRONG_PARTITION, []
    if size < 0:
        return INVALID_FETCH_SIZE, []
    if topic is None:
        return NONE, []
    if not topic.partitions[index].leadership.leads:
        if unknown is not None:
            raise unknown
        return WRONG_PARTITION, []
    partition = leader_partition(session, name, index)
    log, visible = partition.log, partition.high_watermark.offset
    if not log.end:  # the partition has no log yet
        return NONE, []
    if not log.start <= offset <= visible:
        return OFFSET_OUT_OF_RANGE, []
    edge = partition.segments.find_edge(offset)
    end = min(visible if edge is None else edge, visible, offset + min(size, room))
    data = await partition.read_messages(offset, end)
    # A position in a gap is none that there ever was.
    return (OFFSET_OUT_OF_RANGE, []) if end > offset and not data else (NONE, data)
