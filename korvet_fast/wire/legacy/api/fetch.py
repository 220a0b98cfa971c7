"""FETCH (1) and MULTIFETCH (2): bytes of the log from a position on, up to the end of its segment. Nothing waits.

An answer of MULTIFETCH has no more bytes than there is memory for: positions named last may get fewer than they ask.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from korvet_fast.errors import KorvetError
from korvet_fast.types import Buffer
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.legacy.body import FetchBody
from korvet_fast.wire.legacy.session import Session
from korvet_fast.wire.legacy.topics import find_topic, has_partition, is_led, is_legal, led_partition

NONE, OFFSET_OUT_OF_RANGE, WRONG_PARTITION, INVALID_FETCH_SIZE, UNKNOWN = 0, 1, 3, 4, -1
HEAD: Final = Struct(">ih")  # size, of what follows it; error
_LITTLE: Final = 64 * 1024  # bytes of an answer that nobody has to wait for


async def fetch(session: Session, bodies: list[FetchBody], _: Callable[[], None]) -> Reply:
    (body,) = bodies
    room = await _reserve(session, bodies)
    try:
        return await _answer(session, body, room)
    finally:
        _release(session, room)


async def multi_fetch(session: Session, bodies: list[FetchBody], _: Callable[[], None]) -> Reply:
    left = room = await _reserve(session, bodies)
    pace = session.pace()
    parts: Reply = []
    try:
        for body in bodies:
            answer = await _answer(session, body, left)
            left -= sum(map(len, answer)) - HEAD.size
            parts += answer
            if pace.due():
                await pace.turn()
    finally:
        _release(session, room)
    return [HEAD.pack(HEAD.size - 4 + sum(map(len, parts)), NONE), *parts]


async def _reserve(session: Session, bodies: list[FetchBody]) -> int:
    """How many bytes of messages the answer may have; they are held until `_release`."""
    await session.order.wait_durable()
    most = session.broker.settings.number
    wanted = sum(_count_available(session, body) for body in bodies)
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


async def _answer(session: Session, body: FetchBody, room: int) -> Reply:
    """A whole answer to one position."""
    try:
        error, data = await _read(session, body, room)
    except KorvetError as failure:
        session.broker.log.warn("fetch", f"a FETCH of {session.peer} from {body.topic!r} failed: {failure.detail}")
        error, data = UNKNOWN, []
    return [HEAD.pack(HEAD.size - 4 + sum(map(len, data)), error), *data]


async def _read(session: Session, body: FetchBody, room: int) -> tuple[int, list[Buffer]]:
    """The error, and the bytes. Raises `KorvetError`."""
    name, index, offset, size = body
    if not is_legal(name):
        return UNKNOWN, []
    topic = await find_topic(session, name)
    if not has_partition(session, name, topic, index):
        return WRONG_PARTITION, []
    if size < 0:
        return INVALID_FETCH_SIZE, []
    if topic is None:
        return NONE, []
    if not await is_led(session, topic, index):
        return WRONG_PARTITION, []
    partition = led_partition(session, name, index)
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
