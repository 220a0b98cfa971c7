"""Produce (key 0), versions 3-11: one record batch of format v2 to each partition named.

3 batches v2; 4 nothing new; 5 log start offset; 6 nothing new; 7 zstd; 8 error messages; 9 flexible; 10 and 11 nothing
that one broker has to say (a new leader's address; transactions). Versions 0-2 carry older formats and are not served,
though ApiVersions names them (see `routes`).
Missing on purpose: transactions (refused with a reason) and the indexes of single bad records (`record_errors` is
empty: a batch is taken or refused whole).

All partitions are appended to before the first wait, in the order of requests. Large or compressed batches are checked
on another thread; then what comes after them in the request, and in the later produces of this connection, is checked
too, but waits for its turn to append.
"""

import asyncio
from typing import Final

from korvet_fast._native import admit, recompress, restamp
from korvet_fast.core.partition import Appended, Facts, Partition
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import CodecError, KorvetError
from korvet_fast.wire.dialect import Hangup
from korvet_fast.wire.kafka.faults import NONE, blame_records, translate
from korvet_fast.wire.kafka.session import Session, Values

EXPANDED: Final = 1 << 28  # bytes a batch may decompress to; the codec's 64 x compressed + 1 MiB is mostly less
HEAVY: Final = 1536 * 1024  # from this size on a batch is checked on another thread
HEAVY_COMPRESSED: Final = 16 * 1024  # and from this size if it is compressed; the codec lets go of the GIL above it too
_ATTRIBUTES = 22  # where in a batch the low byte of the attributes is
_ZSTD = 4
_ZSTD_SINCE = 7  # version of Produce


class Part:
    """One partition of the request that is not done with at once: its row of the answer, and what is known so far."""

    __slots__ = ("appended", "checking", "data", "facts", "partition", "row")

    def __init__(self, index: int, partition: Partition) -> None:
        self.row: Values = {"index": index, "base_offset": -1}
        self.partition = partition
        self.data: bytearray | memoryview = bytearray()
        self.facts: Facts | None = None
        self.checking: asyncio.Future[tuple[bytearray | memoryview, Facts]] | None = None
        self.appended: Appended | None = None


async def produce(session: Session, request: Values, version: int) -> Values | None:
    broker, acks, refusal = session.broker, request["acks"], _refuse(request)
    now = broker.now()
    responses = []
    parts: list[Part] = []
    late = session.turn is not None  # others have to be appended first
    for topic in request["topic_data"]:
        name = topic["name"]
        rows: list[Values | tuple[int, ...]] = []
        found = broker.find_led(name)
        led, light = ((), 0) if found is None else (found.partitions, _measure(found.config, version))
        many = len(led)
        for asked in topic["partition_data"]:
            index, data = asked["index"], asked["records"]
            try:
                if refusal is not None:
                    raise refusal
                partition = led[index] if 0 <= index < many else None
                if partition is None or not partition.led:
                    partition = broker.partition(name, index)
                if data and len(data) <= light and not late:
                    facts = admit(data, EXPANDED)
                else:
                    heavy = _weigh(partition, data, version)
                    if heavy or late:
                        part = _begin(session, Part(index, partition), data, heavy)
                        parts.append(part)
                        rows.append(part.row)
                        late = True
                        continue
                    data, facts = _check(data, partition)
                appended = partition.append(data, facts, acks, now)
                base, time, start, done = appended
                if done is None:
                    rows.append((index, NONE, base, time, start))
                else:
                    part = Part(index, partition)
                    part.appended = appended
                    parts.append(part)
                    rows.append(part.row)
            except CodecError as error:
                rows.append(_fail({"index": index, "base_offset": -1}, blame_records(error)))
            except KorvetError as error:
                rows.append(_fail({"index": index, "base_offset": -1}, error))
        responses.append({"name": name, "partition_responses": rows})
    if late:
        await _take_turn(session, parts, acks)
    if parts:
        await _settle(parts, request["timeout_ms"])
    if acks == 0:
        for row in (row for topic in responses for row in topic["partition_responses"]):
            if isinstance(row, dict) and "error_message" in row:
                # Nothing can be said without a reply; a closed connection makes the producer look again, as in Kafka.
                raise Hangup(f"a produce with acks=0 failed: {row['error_message']}")
        return None
    return {"responses": responses}


def _fail(row: Values, error: KorvetError) -> Values:
    row["error_code"], row["error_message"] = translate(error)
    return row


def _refuse(request: Values) -> KorvetError | None:
    if request["acks"] not in (-1, 0, 1):
        return KorvetError("INVALID_REQUIRED_ACKS")
    if request["transactional_id"] is not None:
        return KorvetError("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "transactions are not served by this broker")
    return None


def _measure(config: TopicConfig, version: int) -> int:
    """Up to which size a batch is checked at once, whatever its compression, and need not be changed."""
    return (
        min(config.max_message_bytes, HEAVY_COMPRESSED) if config.compression is None and version >= _ZSTD_SINCE else 0
    )


def _weigh(partition: Partition, data: memoryview | None, version: int) -> bool:
    """Whether to check these records on another thread. Raises `KorvetError` for what need not be checked at all."""
    if not data:
        raise KorvetError("INVALID_RECORD", "the request holds no record batch for this partition")
    size, config = len(data), partition.config
    if size > config.max_message_bytes:
        limit = config.max_message_bytes
        raise KorvetError("MESSAGE_TOO_LARGE", f"{size} bytes, but {partition.topic} takes {limit}")
    compression = _read_compression(data)
    if compression == _ZSTD and version < _ZSTD_SINCE:
        raise KorvetError("UNSUPPORTED_COMPRESSION_TYPE", "zstd needs version 7 of Produce")
    return size > (HEAVY_COMPRESSED if compression else HEAVY) or config.compression not in (None, compression)


def _begin(session: Session, part: Part, data: memoryview, heavy: bool) -> Part:
    """Check what is to be appended in its turn: now, or on another thread. Raises `KorvetError`."""
    if heavy:
        loop = asyncio.get_running_loop()
        part.checking = loop.run_in_executor(session.service.workers, _check, data, part.partition)
    else:
        part.data, part.facts = _check(data, part.partition)
    return part


def _read_compression(data: memoryview) -> int:
    return data[_ATTRIBUTES] & 7 if len(data) > _ATTRIBUTES else 0


def _check(data: memoryview, partition: Partition) -> tuple[bytearray | memoryview, Facts]:
    """The one batch in `data`, verified, in the compression the topic wants. Raises `KorvetError`."""
    try:
        facts = admit(data, EXPANDED)
    except CodecError as error:
        raise blame_records(error) from None
    wanted = partition.config.compression
    if wanted is None or wanted == _read_compression(data):
        return data, facts
    _, count, time, flags, numbers = facts
    restamp(data, 0, -1, time, None)  # the header tells the true time from now on
    packed = recompress(data, wanted, EXPANDED)
    return packed, (len(packed), count, time, flags, numbers)


async def _take_turn(session: Session, parts: list[Part], acks: int) -> None:
    """Append the rest when the checks are done and every earlier produce of this connection has appended."""
    checking = [part.checking for part in parts if part.checking is not None]
    before = session.turn
    mine = session.turn = asyncio.get_running_loop().create_future()
    try:
        if checking:
            await asyncio.wait(checking)
        if before is not None:
            await before
        now = session.broker.now()
        for part in parts:
            if part.appended is None:
                _append(part, acks, now)
    finally:
        if not mine.done():
            mine.set_result(None)
        if session.turn is mine:
            session.turn = None


def _append(part: Part, acks: int, now: int) -> None:
    try:
        if part.checking is not None:
            part.data, part.facts = part.checking.result()
        assert part.facts is not None
        part.appended = part.partition.append(part.data, part.facts, acks, now)
    except KorvetError as error:
        _fail(part.row, error)


async def _wait(futures: list["asyncio.Future[None]"], seconds: float) -> None:
    """Until all are done or the time is over. `asyncio.wait` without its sets: this is once a produce.

    The futures are not awaited themselves: they are shared, and a cancellation must not reach them.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    left = len(futures)

    def stop() -> None:
        if not over.done():
            over.set_result(None)

    def count(_: "asyncio.Future[None]") -> None:
        nonlocal left
        left -= 1
        if left == 0:
            stop()

    timer = loop.call_later(seconds, stop)
    for future in futures:
        future.add_done_callback(count)
    try:
        await over
    finally:
        timer.cancel()


async def _settle(parts: list[Part], timeout_ms: int) -> None:
    """Wait for what acks asked for, and fill in the rows."""
    waiting = [part.appended[3] for part in parts if part.appended is not None and part.appended[3] is not None]
    if waiting:
        await _wait(waiting, max(timeout_ms, 0) / 1000)
    for part in parts:
        appended, row = part.appended, part.row
        if appended is None:
            continue
        *place, start, done = appended
        if done is not None and not done.done():
            _fail(row, KorvetError("REQUEST_TIMED_OUT", f"stored, but not as acks asks for within {timeout_ms} ms"))
        elif done is not None and (failure := done.exception()) is not None:
            _fail(row, part.partition.explain(failure))
        else:
            placed = done.result() if done is not None else None
            row["base_offset"], row["log_append_time_ms"] = placed or place
            row["log_start_offset"] = start
