"""OFFSETS (4): where segments start, by the time of their last append. Whatever is wrong closes the connection."""

from collections.abc import Callable
from struct import pack
from typing import Final

from korvet_fast.core.acls.binding import Operation
from korvet_fast.errors import KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.legacy.api.fetch import HEAD, NONE
from korvet_fast.wire.legacy.body import Malformed, OffsetsBody
from korvet_fast.wire.legacy.session import Session
from korvet_fast.wire.legacy.topics import find_topic, has_partition, is_legal, leader_partition, refresh_leadership

_EDGES: Final = (-1, -2)  # the times that mean the end and the start


async def find_offsets(session: Session, bodies: list[OffsetsBody], _: Callable[[], None]) -> Reply:
    await session.order.wait_durable()
    try:
        found = await _find(session, *bodies)
    except KorvetError as error:
        raise Malformed(f"offsets of {bodies[0].topic!r} cannot be told: {error.detail}") from None
    data = pack(f">i{len(found)}q", len(found), *found)
    return [HEAD.pack(HEAD.size - 4 + len(data), NONE), data]


async def _find(session: Session, body: OffsetsBody) -> list[int]:
    """Raises `Malformed`, `KorvetError`."""
    name, index, time, most = body
    if not session.may("OFFSETS", Operation.DESCRIBE, name):
        raise Malformed(f"no ACL lets {session.principal} describe {name!r}")
    topic = await find_topic(session, name) if is_legal(name) else None
    if not is_legal(name) or most < 0 or not has_partition(session, name, topic, index):
        raise Malformed(f"offsets were asked of partition {index} of {name!r}, {most} at most")
    if topic is not None:
        await refresh_leadership(session, topic, index)
    if topic is None or not topic.partitions[index].log.end:
        return [0] if time in _EDGES else []
    partition = leader_partition(session, name, index)
    start, visible = partition.log.start, partition.high_watermark.offset
    return partition.segments.find_offsets(time, most, start, visible, session.broker.now())
