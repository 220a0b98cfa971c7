"""Produce (key 0), versions 3-11: one record batch of format v2 to each partition named.

3 batches v2; 4 nothing new; 5 log start offset; 6 nothing new; 7 zstd; 8 error messages; 9 flexible; 10 and 11 nothing
that one broker has to say (a new leader's address; transactions). Versions 0-2 carry older formats and are not served,
though ApiVersions names them (see `routes`).
Missing on purpose: transactions (refused with a reason) and the indexes of single bad records (`record_errors` is
empty: a batch is taken or refused whole).

All partitions are appended to before the first wait, in the order of requests. Large or compressed batches are checked
on another thread; then the later produces of this connection are checked too, but wait for their turn to append.
"""

import asyncio
from typing import Any, Final

from korvet_fast._native import Batch, check, headers, recompress, restamp
from korvet_fast.core.partition import Appended, Partition
from korvet_fast.errors import CodecError, KorvetError
from korvet_fast.wire.dialect import Hangup
from korvet_fast.wire.kafka.faults import blame_records, translate
from korvet_fast.wire.kafka.session import Session, Values

EXPANDED: Final = 1 << 28  # bytes a batch may decompress to; the codec's 64 x compressed + 1 MiB is mostly less
HEAVY: Final = 256 * 1024  # from this size on a batch is checked on another thread
HEAVY_COMPRESSED: Final = 16 * 1024  # and from this size if it is compressed; the codec lets go of the GIL above it too
_ATTRIBUTES = 22  # where in a batch the low byte of the attributes is
_ZSTD = 4


class Part:
    """One partition of the request on its way: its row of the answer, and what is known so far."""

    __slots__ = ("appended", "batch", "checking", "data", "partition", "row")

    def __init__(self, index: int) -> None:
        self.row: Values = {"index": index, "base_offset": -1}
        self.partition: Partition | None = None
        self.data: bytearray | memoryview = bytearray()
        self.batch: Batch | None = None
        self.checking: asyncio.Future[tuple[bytearray | memoryview, Batch]] | None = None
        self.appended: Appended | None = None

    def fail(self, error: KorvetError) -> None:
        self.row["error_code"], self.row["error_message"] = translate(error)


async def produce(session: Session, request: Values, version: int) -> Values | None:
    acks = request["acks"]
    refusal = _refuse(request)
    parts: list[Part] = []
    responses = []
    for topic in request["topic_data"]:
        name = topic["name"]
        rows = []
        for asked in topic["partition_data"]:
            part = Part(asked["index"])
            parts.append(part)
            rows.append(part.row)
            try:
                if refusal is not None:
                    raise refusal
                part.partition = session.broker.partition(name, asked["index"])
                _examine(session, part, asked["records"], version)
            except KorvetError as error:
                part.fail(error)
        responses.append({"name": name, "partition_responses": rows})
    checking = [part.checking for part in parts if part.checking is not None]
    if checking or session.turn is not None:
        await _take_turn(session, parts, checking, acks)
    else:
        _append(parts, acks)
    await _settle(parts, request["timeout_ms"])
    if acks == 0:
        failed = next((part.row for part in parts if part.row.get("error_code")), None)
        if failed is not None:
            # Nothing can be said without a reply; a closed connection makes the producer look again, as Kafka does.
            raise Hangup(f"a produce with acks=0 failed: {failed['error_message']}")
        return None
    return {"responses": responses}


def _refuse(request: Values) -> KorvetError | None:
    if request["acks"] not in (-1, 0, 1):
        return KorvetError("INVALID_REQUIRED_ACKS")
    if request["transactional_id"] is not None:
        return KorvetError("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "transactions are not served by this broker")
    return None


def _examine(session: Session, part: Part, data: memoryview | None, version: int) -> None:
    """Check the batch now, or begin to on another thread. Raises `KorvetError`."""
    partition = part.partition
    assert partition is not None
    if not data:
        raise KorvetError("INVALID_RECORD", "the request holds no record batch for this partition")
    size = len(data)
    if size > partition.config.max_message_bytes:
        limit = partition.config.max_message_bytes
        raise KorvetError("MESSAGE_TOO_LARGE", f"{size} bytes, but {partition.topic} takes {limit}")
    compression = data[_ATTRIBUTES] & 7 if size > _ATTRIBUTES else 0
    if compression == _ZSTD and version < 7:
        raise KorvetError("UNSUPPORTED_COMPRESSION_TYPE", "zstd needs version 7 of Produce")
    if size > (HEAVY_COMPRESSED if compression else HEAVY) or partition.config.compression not in (None, compression):
        loop = asyncio.get_running_loop()
        part.checking = loop.run_in_executor(session.service.workers, _check, data, partition)
    else:
        part.data, part.batch = _check(data, partition)


def _check(data: memoryview, partition: Partition) -> tuple[bytearray | memoryview, Batch]:
    """The one batch in `data`, verified, in the compression the topic wants. Raises `KorvetError`."""
    try:
        batches = check(data, EXPANDED)
    except CodecError as error:
        raise blame_records(error) from None
    if len(batches) != 1:
        raise KorvetError("INVALID_RECORD", f"a partition takes one record batch in a request, not {len(batches)}")
    batch = batches[0]
    wanted = partition.wants(batch)
    if wanted is None:
        return data, batch
    restamp(data, batch.base_offset, batch.leader_epoch, batch.max_timestamp, None)
    packed = recompress(data, wanted, EXPANDED)
    return packed, headers(packed, False)[0]


async def _take_turn(session: Session, parts: list[Part], checking: list["asyncio.Future[Any]"], acks: int) -> None:
    """Append when the checks are done and every earlier produce of this connection has appended."""
    before = session.turn
    mine = session.turn = asyncio.get_running_loop().create_future()
    try:
        if checking:
            await asyncio.wait(checking)
        if before is not None:
            await before
        for part in parts:
            if part.checking is not None:
                try:
                    part.data, part.batch = part.checking.result()
                except KorvetError as error:
                    part.fail(error)
        _append(parts, acks)
    finally:
        if not mine.done():
            mine.set_result(None)
        if session.turn is mine:
            session.turn = None


def _append(parts: list[Part], acks: int) -> None:
    for part in parts:
        if part.batch is not None:
            assert part.partition is not None
            try:
                part.appended = part.partition.append(part.data, part.batch, acks=acks)
            except KorvetError as error:
                part.fail(error)


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
    waiting = [part.appended.done for part in parts if part.appended is not None and part.appended.done is not None]
    if waiting:
        await _wait(waiting, max(timeout_ms, 0) / 1000)
    for part in parts:
        appended = part.appended
        if appended is None:
            continue
        done = appended.done
        if done is not None and not done.done():
            part.fail(KorvetError("REQUEST_TIMED_OUT", f"stored, but not as acks asks for within {timeout_ms} ms"))
        elif done is not None and (failure := done.exception()) is not None:
            assert part.partition is not None
            part.fail(part.partition.explain(failure))
        else:
            placed = done.result() if done is not None else None
            part.row["base_offset"], part.row["log_append_time_ms"] = placed or appended[:2]
            part.row["log_start_offset"] = appended.log_start_offset
