"""CONSUME: messages from an offset on, up to the high watermark, written natively; a follower does it too.

What was removed by retention is passed over: the first message tells where the log begins. A read takes no more than is
likely to be needed; where messages are missing, another one follows. What was written last is kept for who asks for
the same (`blocks.py`), and what was read beyond an answer's end for who goes on there (`read_ahead.py`).
"""

from typing import Final, NamedTuple

from korvet_fast._native import write_messages
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.produce.check import EXPANDED
from korvet_fast.core.replication.follower_reads import FollowerPartition
from korvet_fast.errors import CodecError, Errors, KorvetError
from korvet_fast.types import INLINE_EXPANDED, UNPACKS_TO_MUCH, Buffer
from korvet_fast.wire.text.api.topics import find_topic
from korvet_fast.wire.text.arguments import Arguments
from korvet_fast.wire.text.blocks import ENOUGH, BlockKey
from korvet_fast.wire.text.costs import DEFAULT_MAX, MOST_BYTES
from korvet_fast.wire.text.errors import BAD_REQUEST
from korvet_fast.wire.text.read_ahead import LONG_READ, ReadAheadKey, UnusedBatches
from korvet_fast.wire.text.session import Payload, RequestError, Session

ENCODINGS: Final = ("plain", "percent", "base64")  # in the order of their numbers in the codec
_PAGE: Final = 63 * 1024  # bytes of a read; the store takes what is smaller than 64 KiB without a mapping

Written = tuple[bytearray, int, int, bool]  # see `write_messages`


async def consume(session: Session, arguments: Arguments) -> Payload:
    name, index = str(arguments["topic"]), int(arguments["partition"])
    topic = session.broker.topics.get(name)
    if topic is None:  # a coroutine less where it is known
        topic = await find_topic(session, name)
    partition = session.broker.local_replica(name, index)
    log = partition.log
    offset = max(int(arguments["offset"]), log.removed)
    if log.entries_layout and offset >= log.end:
        await log.refresh_bounds()  # another program may have added to it
    limit, told = partition.high_watermark.offset, partition.told_high_watermark
    encoding = ENCODINGS.index(str(arguments.get("encoding", ENCODINGS[0])))
    most = int(arguments.get("max", DEFAULT_MAX))
    if not most or offset >= limit:
        parts: list[Buffer] = []
    elif isinstance(partition, FollowerPartition) or (log.is_shared and session.broker.replication is None):
        parts = (await _read(session, partition, _Wanted(offset, limit, encoding, most), None)).parts
    else:
        place = ReadAheadKey(topic.id, index, partition.leadership.epoch, offset)
        key = BlockKey(topic.id, index, place.epoch, offset, encoding, most)
        kept = session.service.blocks.find(key, limit)
        if kept is not None:
            parts = kept
        else:
            page = session.service.read_ahead.take(place)
            read = await _read(session, partition, _Wanted(offset, limit, encoding, most), page)
            parts = read.parts
            if partition.leadership.epoch == place.epoch:
                if read.end is not None:
                    session.service.blocks.keep(key, parts, read.end)
                if read.left is not None:
                    after, unused = read.left
                    session.service.read_ahead.keep(place._replace(offset=after), unused)
    return [b"messages=", *parts, b" hw=%d" % (-1 if told < 0 else limit)]


class _Wanted(NamedTuple):
    """At most so many messages, from `offset` on, below `limit`."""

    offset: int
    limit: int
    encoding: int
    most: int


class _Read(NamedTuple):
    """The text of messages, in parts.

    `end`: what ended it: `ENOUGH`, the limit, None for lack of room. `left`: the page with more of them, and its place.
    """

    parts: list[Buffer]
    end: int | None
    left: tuple[int, UnusedBatches] | None


async def _read(
    session: Session, partition: Partition | FollowerPartition, wanted: _Wanted, page: UnusedBatches | None
) -> _Read:
    """Read and write messages. `page`: of whoever goes on where an answer ended."""
    offset, limit, encoding, most = wanted
    room = min(MOST_BYTES, session.answer_room())
    parts: list[Buffer] = []
    left = None
    size = _PAGE if page is None else LONG_READ
    while most > 0 and offset < limit:
        if page is None:
            read = await partition.read_copied(offset, size)
            if not read.data:
                break
            page = UnusedBatches(read.data[0] if len(read.data) == 1 else b"".join(read.data), read.next)
        text, many, after, full = await _write(session, page.data, offset, limit, encoding, most, room)
        if parts and len(text) > room:
            break  # a first message may be longer than there is room; this one is not the answer's first
        if many:
            if parts:
                parts.append(b",")
            parts.append(text)
            most, room = most - many, room - len(text) - 1
        if full or room <= 0:
            left = (after, page) if after < page.next else None
            break
        offset, page = max(after, page.next), None
    return _Read(parts, ENOUGH if most == 0 else limit if offset >= limit else None, left)


async def _write(
    session: Session, data: Buffer, offset: int, limit: int, encoding: int, most: int, room: int
) -> Written:
    most = min(most, MOST_BYTES)
    value = session.service.value_limit
    try:
        try:
            return write_messages(data, offset, limit, encoding, most, room, value, INLINE_EXPANDED)
        except CodecError as error:
            if error.code != UNPACKS_TO_MUCH:
                raise
        async with session.searches:
            return await session.offload(write_messages, data, offset, limit, encoding, most, room, value, EXPANDED)
    except CodecError as error:
        if error.code == "OVERSIZE":
            reason = "the message at this offset is too large for a line; it is read with a Kafka client"
            raise RequestError(BAD_REQUEST, reason) from None
        raise KorvetError(Errors.CORRUPT_MESSAGE, str(error)) from error
