"""Records of a partition: from an offset, from a time, or those that come; fifty at a time, whatever the load is."""

from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from korvet_fast._native import batch_headers, to_columns
from korvet_fast.core.fetch.service import fetch_one
from korvet_fast.core.partition.partition import Partition
from korvet_fast.errors import CodecError, Errors, KorvetError
from korvet_fast.types import SHORT_EXPANDED, Buffer
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page.fields import find_topic, read_number
from korvet_fast.wire.http.page.render import render
from korvet_fast.wire.http.page.show import Cell, show_line, show_value
from korvet_fast.wire.http.session import Session

_MOST: Final = 50  # records on a page
_BYTES: Final = 512 * 1024  # of batches that are read for it
_KEY: Final = 400  # characters of a key, or of a header's value
_HEADERS: Final = 20  # of a record
_MS_DIGITS: Final = 15  # of milliseconds since 1970
_FRESH: Final = 0.1  # seconds: a record that another program added just now is to be seen


class RecordRow(NamedTuple):
    """A record as it is shown. `more`: how many headers are not."""

    offset: int
    timestamp: int
    key: Cell
    value: Cell
    headers: list[tuple[str, Cell]]
    more: int


class Found(NamedTuple):
    """Records, and the offset behind the last one that was looked at. `note`: why one is not shown; "" for nothing."""

    rows: list[RecordRow]
    next: int
    note: str = ""


async def show_records(session: Session, exchange: Exchange) -> Answer:
    """`/records?topic=&partition=` and `offset=` or `time=`, or `live=1` for those that come from now on.

    The page that follows a partition asks again with the offset where the last answer ended. What has come meanwhile
    beyond one answer is left out, and counted. Raises `KorvetError`.
    """
    fields, pace = exchange.query, session.pace()
    topic, index = fields.get("topic", ""), read_number(fields, "partition", 0)
    partition = session.broker.partition(topic, index)
    partitions = len(find_topic(session.broker, topic).partitions)
    await partition.log.refresh_bounds(_FRESH)
    live = "live" in fields
    offset = await _find_offset(session, partition, fields, live)
    found = await _read(session, topic, index, max(offset, partition.log.start))
    end, left_out = partition.high_watermark.offset, 0
    if live and found.next < end:
        left_out, found = end - found.next, found._replace(next=end)
    return await render(
        session,
        "records.html",
        pace,
        topic=topic,
        partitions=partitions,
        index=index,
        offset=offset,
        found=found,
        live=live,
        left_out=left_out,
        counted=not partition.log.entries_layout,
        start=partition.log.start,
        end=end,
        time=fields.get("time", ""),
        most=_MOST,
    )


async def _find_offset(session: Session, partition: Partition, fields: Mapping[str, str], live: bool) -> int:
    end = partition.high_watermark.offset
    if fields.get("offset", "").strip():
        return min(read_number(fields, "offset"), end)
    if time := fields.get("time", "").strip():
        async with session.searches:
            found = await partition.log.find_time(_read_time(time), session.offload)
        return end if found is None else found.offset
    return end if live else partition.log.start


def _read_time(text: str) -> int:
    """Milliseconds since 1970, of a time in UTC as browsers send it, or of that number. Raises `KorvetError`."""
    if text.isascii() and text.isdigit() and len("20261231") < len(text) <= _MS_DIGITS:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        ask = "write a time as 2026-12-31T23:59:59, in UTC"
        raise KorvetError(Errors.INVALID_REQUEST, f"time is {show_line(text)!r}: {ask}") from None
    return max(0, int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000))


async def _read(session: Session, topic: str, index: int, offset: int) -> Found:
    part = await fetch_one(session, topic, (index, offset, _BYTES, -1), _BYTES, 0, 0)
    if part.error is not None:
        raise part.error
    return await session.offload(find_rows, part.records, offset)


def find_rows(records: list[Buffer], first: int) -> Found:
    """Batches -> the first records from offset `first` on, as they are shown."""
    rows: list[RecordRow] = []
    after = first
    for each in records:
        data = memoryview(each)
        for batch in batch_headers(data, False):
            try:
                columns = to_columns(data[batch.start : batch.start + batch.size], SHORT_EXPANDED)
            except CodecError as error:
                note = f"the records from offset {max(first, batch.base_offset)} to {batch.last_offset} are not shown: "
                return Found(rows, batch.last_offset + 1, note + str(error))
            rows += _unpack({name: memoryview(column) for name, column in columns.items()}, first, _MOST - len(rows))
            if len(rows) == _MOST:
                return Found(rows, rows[-1].offset + 1)
            after = batch.last_offset + 1
    return Found(rows, after)


def _unpack(columns: Mapping[str, memoryview], first: int, most: int) -> list[RecordRow]:
    offsets = columns["offset"]
    begin = bisect_left(offsets, first)
    return [_row(columns, at) for at in range(begin, min(begin + most, len(offsets)))]


def _row(columns: Mapping[str, memoryview], at: int) -> RecordRow:
    begin, end = columns["header_offsets"][at], columns["header_offsets"][at + 1]
    headers = [
        (show_line(str(_slice(columns, "header_key", each), "utf-8", "replace")), _cell(columns, "header_value", each))
        for each in range(begin, min(end, begin + _HEADERS))
    ]
    key, value = _cell(columns, "key", at), show_value(_find(columns, "value", at))
    more = end - begin - len(headers)
    return RecordRow(columns["offset"][at], columns["timestamp"][at], key, value, headers, more)


def _cell(columns: Mapping[str, memoryview], name: str, at: int) -> Cell:
    return show_value(_find(columns, name, at), _KEY)


def _find(columns: Mapping[str, memoryview], name: str, at: int) -> memoryview | None:
    return _slice(columns, name, at) if columns[f"{name}_valid"][at] else None


def _slice(columns: Mapping[str, memoryview], name: str, at: int) -> memoryview:
    places = columns[f"{name}_offsets"]
    return columns[name][places[at] : places[at + 1]]
