"""Fetch (key 1), versions 4-12: record batches as they lie in the log, waiting for more if there are too few.

4 isolation level; 5 log start offset; 6 nothing new; 7 sessions; 8 nothing new; 9 leader epoch checks; 10 zstd;
11 racks; 12 flexible. There are no transactions, so both isolation levels read up to the high watermark.
Missing on purpose: fetch sessions (every answer says session 0, so that clients name all partitions each time), replica
fetches (refused), diverging epochs (only replicas ask), reading from the nearest rack.
"""

from typing import Final, NamedTuple

from korvet_fast.core.eager import together
from korvet_fast.core.partition import Partition
from korvet_fast.core.watch import Watch
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.epochs import check_epoch
from korvet_fast.wire.kafka.faults import FETCH_SESSION_ID_NOT_FOUND, translate
from korvet_fast.wire.kafka.session import Session, Values

_CLOSE_SESSION: Final = -1  # session epoch: the last fetch of a session


class Part(NamedTuple):
    """One partition that can be read: its row of the answer, and what was asked of it."""

    row: Values
    partition: Partition
    offset: int
    max_bytes: int


async def fetch(session: Session, request: Values, version: int) -> Values:
    if request["session_id"] and request["session_epoch"] != _CLOSE_SESSION:
        return {"error_code": FETCH_SESSION_ID_NOT_FOUND}
    parts: list[Part] = []
    far: list[Part] = []  # where another program may have put something that was not seen yet
    responses = []
    asked_for = 0
    for topic in request["topics"]:
        name = topic["topic"]
        rows: list[Values] = []
        asked_for += len(topic["partitions"])
        for asked in topic["partitions"]:
            row: Values = {"partition_index": asked["partition"], "high_watermark": -1, "records": b""}
            rows.append(row)
            try:
                if request["replica_id"] >= 0:
                    raise KorvetError("INVALID_REQUEST", "this broker has no replicas, so none may fetch")
                part = _place(session, name, asked, row)
                parts.append(part)
                if part.offset >= part.partition.end and part.partition.single:
                    far.append(part)
            except KorvetError as error:
                row["error_code"], _ = translate(error)
        responses.append({"topic": name, "partitions": rows})
    if far:
        await together([_look(part) for part in far])
        parts = [part for part in parts if "error_code" not in part.row]
    if len(parts) == asked_for:  # an error is told at once
        await _wait(session, parts, request["min_bytes"], request["max_wait_ms"])
    left = min(request["max_bytes"], session.broker.settings.number("fetch.max.bytes"))
    await _read_all(parts, left)
    aborted: list[Values] | None = [] if request["isolation_level"] else None
    for part in parts:
        part.row["aborted_transactions"] = aborted
        _describe(part.row, part.partition)
    return {"responses": responses}


def _place(session: Session, topic: str, asked: Values, row: Values) -> Part:
    """Where to read. Raises `KorvetError`."""
    partition = session.broker.partition(topic, asked["partition"])
    check_epoch(partition, asked["current_leader_epoch"])
    offset = asked["fetch_offset"]
    if not partition.removed <= offset <= partition.end and not (partition.single and offset > partition.end):
        _describe(row, partition)
        raise KorvetError("OFFSET_OUT_OF_RANGE")
    return Part(row, partition, offset, asked["partition_max_bytes"])


async def _look(part: Part) -> None:
    """See what there is now; the row gets an error if that is not enough."""
    try:
        await part.partition.look()
        part.partition.check(part.offset)
    except KorvetError as error:
        part.row["error_code"], _ = translate(error)
        _describe(part.row, part.partition)


async def _wait(session: Session, parts: list[Part], min_bytes: int, max_wait_ms: int) -> None:
    """Until `min_bytes` can be read, or the time is over, or the connection goes."""
    missing = min_bytes
    for part in parts:
        if missing <= 0:
            return
        missing -= part.partition.readable(part.offset)
    if missing <= 0 or max_wait_ms <= 0 or session.closed:
        return
    with Watch([(part.partition, part.offset) for part in parts], min_bytes) as watch:
        session.watches.add(watch)
        try:
            await watch.wait(max_wait_ms / 1000)
        finally:
            session.watches.discard(watch)


async def _read_all(parts: list[Part], left: int) -> None:
    """Read from one partition after the other, `left` bytes at most (but one batch at least, unless none are left).

    Those whose limits fit into what is left together are read side by side: what comes is the same.
    """
    done = 0
    while done < len(parts):
        room, until = left, done
        while until < len(parts):
            part = parts[until]
            if part.offset < part.partition.high_watermark:
                room -= max(part.max_bytes, 0)
                if room < 0 and until > done:
                    break
            until += 1
        wave = parts[done:until]
        sizes = await together([_read(part, left) for part in wave])
        for part, size in zip(wave, sizes, strict=True):
            # A batch larger than its partition's limit leaves less than was planned for those behind it.
            if size > left and part is not wave[0]:
                if left > 0:
                    break
                part.row["records"] = b""
                size = 0
            left -= size
            done += 1


async def _read(part: Part, left: int) -> int:
    """Fill in the row, from `left` bytes at most (but one batch at least, unless none are left); returns the bytes."""
    row = part.row
    if left <= 0:
        row["records"] = b""  # it may have been read beside those before it
        return 0
    try:
        data = (await part.partition.read(part.offset, min(part.max_bytes, left))).data
    except KorvetError as error:
        row["error_code"], _ = translate(error)
        return 0
    row["records"] = data
    return sum(map(len, data))


def _describe(row: Values, partition: Partition) -> None:
    row["high_watermark"] = row["last_stable_offset"] = partition.high_watermark
    row["log_start_offset"] = partition.start
