"""Reading a log: from the page cache without leaving the loop, from the disk in a thread.

A large read that finds all of its bytes in the page cache lends them as they lie there, mapped; a small one costs less
as a copy. A read that had to wait may find that the log was cut meanwhile; it then begins anew.

Nobody here looks into mapped bytes. If somebody else cuts the file short, looking ends the process (SIGBUS), while the
kernel, when it sends them, reports an error. The index alone says which bytes are whole batches.
"""

import asyncio
import errno
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from korvet_fast._native import Batch, batch_headers, reserve, slice_batches
from korvet_fast.errors import StoreError
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.embedded.files import LENGTH, Files, Handle
from korvet_fast.store.embedded.index import Index
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.segment import Segment, batch_size, covered_size
from korvet_fast.store.types import ReadResult
from korvet_fast.types import Buffer

_SEARCH = 64 << 10  # bytes read at once when looking for a time
_LEAST = 4 << 10  # bytes read at once at least
_HEAD = 61  # bytes of a batch's header
_MAPPED = 48 << 10  # bytes from which on a read is worth more mapped than copied; whole batches leave 64 KiB unfilled
_INDEX_ROWS = 1 << 20  # rows of indexes kept in memory, 24 bytes each
_INDEX_ITSELF = 32  # rows that an index without any weighs as much as

_Result = TypeVar("_Result")


class _LogChanged(Exception):
    """Records were removed from the log while a thread read it: the read begins anew."""


class DamagedLog(StoreError):
    """There is no batch where one begins, in a file that can be read."""


class Reader:
    """Reads logs. Its results are views: of the buffers that it read into, or of the page cache."""

    def __init__(self, files: Files, pool: Executor) -> None:
        self._files = files
        self._pool = pool
        self._flags = os.RWF_NOWAIT  # 0 where the file system cannot tell cached from not
        self._indexes: OrderedDict[Segment, tuple[int, Index]] = OrderedDict()  # with the size they are of
        self._rows = 0  # weight of all kept indexes, in rows
        self._log = RateLimitedLog(time.monotonic, log=__name__)

    async def read(self, log: Log, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        """See `store.interface.Read`."""
        while True:
            try:
                return await self._read(log, start, max_bytes, limit, copy)
            except _LogChanged:
                continue
            except StoreError as error:
                self._tell(log, error)
                raise

    async def find_time(self, log: Log, ms: int, start: int) -> ReadResult:
        """See `LogStore.find_time`."""
        while True:
            try:
                return await self._find_time(log, ms, start)
            except _LogChanged:
                continue
            except StoreError as error:
                self._tell(log, error)
                raise

    def _tell(self, log: Log, error: StoreError) -> None:
        """Log why records cannot be read; clients only get a code. One line in a while for all logs together."""
        advice = 'cannot be read: see "Records that cannot be read" in docs/operations.md'
        self._log.fail("read", f"{error.detail}; records of {log.name} {advice}")

    def forget(self, segments: Sequence[Segment]) -> None:
        """Let go of the indexes of these segments, and so of the segments."""
        for segment in segments:
            _, index = self._indexes.pop(segment, (-1, None))
            if index is not None:
                self._rows -= _cost(index)

    async def _read(self, log: Log, start: int, max_bytes: int, limit: int, copy: bool) -> ReadResult:
        log.used = True
        data: list[Buffer] = []
        offset = max(start, log.start)
        limit = min(limit, log.end)
        while offset < limit and not log.gone:
            segments, number = log.find(offset)
            segment = segments[number]
            if offset >= segment.end:  # between two segments; there is one above, or `limit` would be reached
                offset = segments[number + 1].base
                continue
            asked = min(max_bytes, LENGTH)
            try:
                piece, following = await self._read_segment(log, segment, offset, asked, limit, copy)
            except StoreError:
                if not data:
                    raise
                break  # the records before are served; the next read, which begins here, fails
            if piece is None or (data and len(piece) > max_bytes):
                break
            data.append(piece)
            offset = following
            max_bytes -= len(piece)
            if max_bytes <= 0 or (offset < segment.end and max_bytes + len(piece) == asked):
                break
        return ReadResult(data, offset if data else start)

    async def _lend(
        self, log: Log, segment: Segment, index: Index, row: tuple[int, int], offset: int, max_bytes: int, limit: int
    ) -> tuple[memoryview, int] | None:
        """As `_read_segment`, mapped; None if not all is cached, or little lies between places that the index knows.

        `row`: the offset and the position of the index's last row at or before `offset`.
        """
        first, begin = row
        if first != offset:
            begin = await self._find_begin(log, segment, begin, offset)
        following, end = segment.end, segment.size
        if following > limit or end > begin + max_bytes:
            following, end = index.row_within(limit, begin + max_bytes)
            if end <= begin:  # a batch larger than `max_bytes`, perhaps
                end = begin + batch_size(await self._fetch(log, segment, begin, _HEAD))
                following = segment.end if end == segment.size else index.offset_of(end)
        if end - begin < _MAPPED or not offset < following <= limit:
            return None
        try:
            view = self._files.view(segment.path, begin, end - begin)
        except OSError as error:
            raise StoreError(f"{segment.path}: {error.strerror}") from error
        return None if view is None else (view, following)

    async def _find_begin(self, log: Log, segment: Segment, position: int, offset: int) -> int:
        """Where the batch begins that holds `offset`; the last row before that offset is at `position`."""
        length = min(log.interval + _HEAD, segment.size - position)  # a batch further away would have a row
        data = await self._fetch(log, segment, position, length)
        before = [batch for batch in batch_headers(data, verify=False) if batch.last_offset < offset]
        return position + covered_size(before)

    async def _read_segment(
        self, log: Log, segment: Segment, offset: int, max_bytes: int, limit: int, copy: bool
    ) -> tuple[memoryview | None, int]:
        """Batches of one segment from `offset` on and the offset after them; None if the first goes beyond `limit`."""
        index = segment.index if segment.index is not None else await self._find_index(log, segment)
        row = index.row_at(offset, segment.base)
        position = row[1]
        size = segment.size
        if max_bytes >= _MAPPED and size - position >= _MAPPED and not copy:
            lent = await self._lend(log, segment, index, row, offset, max_bytes, limit)
            if lent is not None:
                return lent
        length = max(max_bytes, _LEAST) + log.interval
        while True:
            data = await self._fetch(log, segment, position, min(length, size - position))
            begin, end, following = slice_batches(data, offset, limit, max_bytes)
            if end > begin:
                return data[begin:end], following
            # The bytes read hold no whole batch that was asked for. How far do they reach?
            found = batch_headers(data, verify=False)
            if found and found[-1].last_offset >= offset:
                return None, offset
            position, length = _beyond(segment, position, data, found, size)

    async def _find_time(self, log: Log, ms: int, start: int) -> ReadResult:
        log.used = True
        start = max(start, log.start)
        segments, number = log.find(start)
        for segment in segments[number:]:
            if log.gone or segment.max_time < ms or segment.end <= start:
                continue
            index = await self._find_index(log, segment)
            position = max(index.time_position(ms), index.position(start))
            size = segment.size
            length = _SEARCH
            while position < size:
                data = await self._fetch(log, segment, position, min(length, size - position))
                found = batch_headers(data, verify=False)
                for batch in found:
                    if batch.max_timestamp >= ms and batch.last_offset >= start:
                        return ReadResult([data[batch.start : batch.start + batch.size]], batch.last_offset + 1)
                if position + covered_size(found) == size:
                    break
                position, length = _beyond(segment, position, data, found, size)
        return ReadResult([], start)

    async def _find_index(self, log: Log, segment: Segment) -> Index:
        """The index of a segment; of those that do not grow, the ones used last are kept."""
        if segment.index is not None:
            return segment.index
        size, index = self._indexes.pop(segment, (-1, None))
        if index is not None:
            self._rows -= _cost(index)
        if index is None or size != segment.size:
            size = segment.size
            index = await self._in_thread(log, segment, segment.load_index, log.interval)
        if segment not in self._indexes:  # another read may have loaded it meanwhile
            self._indexes[segment] = (size, index)
            self._rows += _cost(index)
        while self._rows > _INDEX_ROWS and len(self._indexes) > 1:
            _, (_, oldest) = self._indexes.popitem(last=False)
            self._rows -= _cost(oldest)
        return index

    async def _fetch(self, log: Log, segment: Segment, position: int, length: int) -> memoryview:
        """`length` bytes of a segment, all of which are there. Raises `StoreError`."""
        got = 0
        data = reserve(length)
        try:
            handle = self._files.open(segment.path)
            if self._flags:
                got = os.preadv(handle.fd, [data], position, self._flags)
        except BlockingIOError:
            pass  # nothing of it is cached
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise StoreError(f"{segment.path}: {error.strerror}") from error
            self._flags = 0
        if got < length:
            await self._in_thread(log, segment, _read_rest, handle, data, position, got)
        return memoryview(data)

    async def _in_thread(self, log: Log, segment: Segment, work: Callable[..., _Result], *arguments: object) -> _Result:
        version = log.version
        log.reading += 1
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except OSError as error:
            if log.version != version:
                raise _LogChanged from error
            raise StoreError(f"{segment.path}: reading failed: {error.strerror}") from error
        finally:
            log.reading -= 1
        if log.version != version:
            raise _LogChanged
        return result


def _read_rest(handle: Handle, data: bytearray, position: int, got: int) -> None:
    """In a thread. Fill `data`, whose first `got` bytes are there. Raises `OSError`."""
    view = memoryview(data)
    while got < len(data):
        count = os.preadv(handle.fd, [view[got:]], position + got)
        if count == 0:
            raise OSError(errno.EIO, f"the file ends before byte {position + len(data)}")
        got += count


def _cost(index: Index) -> int:
    return _INDEX_ITSELF + len(index)


def _beyond(segment: Segment, position: int, data: memoryview, found: list[Batch], size: int) -> tuple[int, int]:
    """Where to read on behind the batches found, and how much, so that the next batch is whole."""
    covered = covered_size(found)
    claimed = batch_size(data[covered:])
    if position + covered + max(claimed, 1) > size or (covered == 0 and claimed <= len(data)):
        raise DamagedLog(f"{segment.path}: no record batch at byte {position + covered}; the file is damaged")
    return position + covered, max(_SEARCH, claimed)
