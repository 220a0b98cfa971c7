"""The metadata log: keys and values that all brokers agree on, kept by one of them and copied by the others.

The leader answers the verbs of `KeyStore` for everybody. A save is one batch of the log, and counts when most brokers
have it on their disks; then the leader and the followers apply it. When most of the log's bytes are out of date, the
leader appends all present values once more, and deletes what is below them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from korvet_fast._native import assign_offsets, batch_headers
from korvet_fast.core.replication.peers import (
    LARGEST_SAVE,
    METADATA_LOG,
    UNCLEAN,
    KeyAnswer,
    KeyRequest,
    KeyVerb,
    read_unclean,
)
from korvet_fast.core.replication.quorum_progress import QuorumProgress
from korvet_fast.core.replication.replica import LogListener, Replica
from korvet_fast.errors import CodecError, OutcomeUnknown, StoreError
from korvet_fast.store.interface import CopyStore
from korvet_fast.store.key_changes import KeyChange, pack_changes, unpack_changes
from korvet_fast.store.types import CompareAndSet, OffsetConflict, RecordBatch, SegmentLimits
from korvet_fast.types import Buffer

logger = logging.getLogger(__name__)

_PAGE = 1 << 20
_SEGMENT = SegmentLimits(4 << 20, 1 << 62)  # whole segments are what compaction frees
_GARBAGE = 1 << 20  # bytes that may always be out of date
_PATIENCE = 5.0  # seconds until most brokers have to have a change
_SLICE = 256 << 10  # bytes of values that are written again at once, about: a batch has to fit in a follower's fetch
_ROW = 80  # bytes that a change takes besides its key and its value, about
_OFFSET_BITS = 32  # of a version, below the epoch of the last unclean election
_LEADER = "leader"  # key of the leader; written first under each epoch, as only that makes older records safe


class MetadataLog(LogListener):
    """`open`; then `serve` answers, while this broker leads. `on_change` gets each key whose value changes.

    `values` holds what most brokers have. `is_ready`: this broker leads, and knows all that ever counted. `failure`:
    why the leader's last record is not on its disk, "" if it is: nothing can be changed meanwhile.
    """

    def __init__(
        self,
        own: int,
        store: CopyStore,
        on_change: Callable[[str, bytes | None], None],
        start: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"],
    ) -> None:
        """`start` runs a task."""
        self.values: dict[str, bytes] = {}
        # What `on_change` was told before the copy began anew, of keys that have not come again.
        self._former: dict[str, bytes] = {}
        self.replica = Replica(METADATA_LOG, "", store, self)
        self.replica.segment_limits = _SEGMENT
        self.replica.tells_watermark = True
        self.is_ready = False
        self.failure = ""
        self._begun: int | None = None  # the epoch under which this broker leads, or begins to
        self._own = own
        self._store = store
        self._on_change = on_change
        self._start = start
        self._uncommitted: deque[tuple[int, list[KeyChange]]] = deque()  # ends of batches, and their changes
        # Including changes that are not safe yet: the next save is compared with them.
        self._latest: dict[str, bytes] = {}
        self._versions: dict[str, int] = {}
        self._unclean = 0  # the epoch of the last unclean election; it stays where its key is damaged
        self._size = self._live = 0  # bytes of the log, and of its present values, about
        self._compacting: asyncio.Task[None] | None = None
        self._proof: asyncio.Task[None] | None = None  # it is not appended yet
        self._proving = asyncio.Lock()

    async def open(self) -> None:
        """Read the log. Nothing is applied before a leader says what counts. Raises `StoreError`."""
        await self.replica.open()
        await self._reload()

    async def _reload(self) -> None:
        """Begin anew with the records that the log has; nothing is applied yet. Raises `StoreError`."""
        replica, offset, found = self.replica, self.replica.start, list[tuple[Buffer, int]]()
        while offset < replica.end:
            page = await replica.opened.read(offset, _PAGE, replica.end, copy=True)
            for records in page.data:
                data = memoryview(records)
                for batch in batch_headers(data, False):
                    found.append((data[batch.start : batch.start + batch.size], batch.last_offset + 1))
            offset = page.next
        self.restarted()  # not before all is read: a copy that could not be read would seem to have lost its keys
        for records, end in found:
            self.appended(records, end)

    async def begin_leading(self, epoch: int, voters: Sequence[int], *, unclean: bool = False) -> None:
        """Lead under `epoch`. Returns when most brokers have the first record of this leadership.

        `unclean`: other brokers may have had records that this one lacks.

        Raises `OffsetConflict` where another broker was promised a later epoch meanwhile, `OutcomeUnknown` where most
        brokers do not copy the record in time, and other `StoreError`s. The leader has to try a new epoch then: nobody
        tells a leader that was cut off of the next one.
        """
        replica = self.replica
        self._begun = epoch
        await replica.begin_leading(epoch, lambda end, safe: QuorumProgress(self._own, epoch, voters, end, safe))
        if self._begun != epoch:
            replica.stop_leading()
            raise OffsetConflict(-1, fenced=True)
        lacking = [(UNCLEAN, b"%d" % epoch)] if unclean else []
        safe = self._append([(_LEADER, b"%d@%d" % (self._own, epoch)), *lacking])
        await asyncio.wait([safe], timeout=_PATIENCE)
        if not safe.done():
            raise OutcomeUnknown(f"most brokers do not copy the metadata log within {_PATIENCE:g} s")
        safe.result()
        if replica.progress is not None and replica.progress.epoch == epoch:
            self.is_ready = True

    def stop_leading(self) -> None:
        """Another broker leads, or was promised to."""
        self.is_ready = False
        self.failure = ""
        self._begun = None
        self.replica.stop_leading()

    # -- events of the log ---------------------------------------------------------------------------------

    def check(self, records: Buffer) -> None:
        """See `LogListener.check`: the next start could not read other batches."""
        _unpack(records)

    def appended(self, records: Buffer, end: int) -> None:
        """See `LogListener.appended`. Raises `StoreError`."""
        changes = _unpack(records)
        self._size += len(records)
        self._uncommitted.append((end, changes))
        for key, value in changes:
            _set(self._latest, key, value)

    async def truncated(self, end: int) -> None:
        """See `LogListener.truncated`. After an unclean election the log may lose what was applied."""
        await self._reload()
        self._apply_committed(self.replica.state.high_watermark)

    def restarted(self) -> None:
        """See `LogListener.restarted`: the present values come again. When all have come, the other keys are gone."""
        self._former |= self.values
        self.values.clear()
        self._latest.clear()
        self._versions.clear()
        self._uncommitted.clear()
        self._size = self._live = 0

    def committed(self, high_watermark: int) -> None:
        """See `LogListener.committed`."""
        self._apply_committed(high_watermark)
        if self._former and (self.replica.progress is not None or high_watermark >= self.replica.state.target):
            for key in list(self._former):
                self._apply(key, None, high_watermark)

    def _apply_committed(self, high_watermark: int) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            end, changes = self._uncommitted.popleft()
            for key, value in changes:
                self._apply(key, value, end)

    def _apply(self, key: str, value: bytes | None, end: int) -> None:
        before = self.values.get(key)
        self._live += _size(key, value) - _size(key, before)
        _set(self.values, key, value)
        self._versions[key[: key.find("/") + 1]] = end
        if key == UNCLEAN:
            self._unclean = _read_unclean(value, self._unclean)
        if value != self._former.pop(key, before):
            try:
                self._on_change(key, value)
            except StoreError as error:
                logger.error("%s: this broker cannot follow the change: %s", key, error.detail)
            except Exception:
                logger.exception("%s: this broker cannot follow the change", key)  # the other keys are not lost by that

    # -- the verbs -----------------------------------------------------------------------------------------------

    async def serve(self, request: KeyRequest) -> KeyAnswer:
        """Answer for a key. Raises `StoreError`."""
        match request.verb:
            case KeyVerb.LOAD:
                found = self.values.get(request.key)
                return KeyAnswer(rows={} if found is None else {request.key: found})
            case KeyVerb.SCAN:
                return self._scan(request)
            case KeyVerb.VERSION:
                return KeyAnswer(number=self.find_version(request.key))
        return KeyAnswer(done=await self._save(request))

    def _scan(self, request: KeyRequest) -> KeyAnswer:
        """The next rows, as many as fit in an answer: one has `LARGEST_SAVE` bytes at most, and no more come behind."""
        rows, size = dict[str, bytes](), 0
        for key in sorted(key for key in self.values if key.startswith(request.key) and key > request.after):
            value = self.values[key]
            size += _size(key, value)
            if rows and size > LARGEST_SAVE:
                return KeyAnswer(rows=rows)
            rows[key] = value
        return KeyAnswer(done=True, rows=rows)

    def find_version(self, prefix: str) -> int:
        """See `SharedStore.version`: of the keys that this broker has.

        After an unclean election other records get the offsets of those that are lost.
        """
        return (self._unclean << _OFFSET_BITS) + self._versions.get(prefix, 0)

    async def _save(self, request: KeyRequest) -> bool:
        changes = [CompareAndSet(*each) for each in request.changes]
        if any(self._latest.get(each.key) != each.expected for each in changes):
            await self._wait(self._settle())  # the compared value may not be safe yet
            return False
        rows = [(each.key, each.value) for each in changes if each.value != each.expected]
        if not rows:
            await self._prove_leadership()
            return all(self._latest.get(each.key) == each.expected for each in changes)
        request.check_size()
        await self._wait(self._append(rows))
        self._compact_soon()
        return True

    async def _prove_leadership(self) -> None:
        """Wait until most brokers have a record that is appended from now on: only who leads has one copied.

        All who ask while an earlier one is on its way have the next in common. Raises as `_append` and `_wait`.
        """
        if self._proof is None:
            self._proof = asyncio.get_running_loop().create_task(self._append_proof())
        await asyncio.shield(self._proof)

    async def _append_proof(self) -> None:
        async with self._proving:
            self._proof = None  # who asks from now on needs a later record
            await self._wait(self._append([(_LEADER, self._latest.get(_LEADER))]))
            self._compact_soon()

    def _append(self, rows: Sequence[KeyChange]) -> "asyncio.Future[None]":
        """Ends when these are safe. Raises `OffsetConflict` and `StoreError`."""
        replica = self.replica
        if replica.progress is None:
            raise OffsetConflict(-1, fenced=True)
        first = replica.end
        data = pack_changes(rows, first)
        assign_offsets(data, first, replica.progress.epoch, None, None)
        try:
            safe = replica.append([RecordBatch(data, first, first + len(rows) - 1, 0)], first).durable
        except StoreError as error:
            self.failure = error.detail
            raise _advise(error) from error
        safe.add_done_callback(self._note_outcome)
        return safe

    def _note_outcome(self, safe: "asyncio.Future[None]") -> None:
        failure = safe.exception()
        if failure is None or isinstance(failure, StoreError):
            self.failure = "" if failure is None else failure.detail

    def _settle(self) -> "asyncio.Future[None]":
        """Ends when all that is in the log is safe. Raises `OffsetConflict`."""
        return self.replica.append((), self.replica.end).durable

    async def _wait(self, safe: "asyncio.Future[None]") -> None:
        """Raises `OutcomeUnknown` where most brokers do not have it in time, or another one leads by now."""
        await asyncio.wait([safe], timeout=_PATIENCE)
        if not safe.done():
            raise OutcomeUnknown(f"most brokers do not answer within {_PATIENCE:g} s; the change may be made or not")
        try:
            safe.result()
        except OffsetConflict:
            raise OutcomeUnknown("the metadata log has another leader, who may have the change or not") from None
        except StoreError as error:
            raise _advise(error) from error

    # -- compaction ----------------------------------------------------------------------------------------------

    def _compact_soon(self) -> None:
        if self._size > 2 * self._live + _GARBAGE and (self._compacting is None or self._compacting.done()):
            self._compacting = self._start(self._compact())

    async def _compact(self) -> None:
        replica = self.replica
        base, self._size = replica.end, 0
        keys = iter([UNCLEAN, *self._latest])  # who begins here knows first how far keys may be lost
        try:
            while rows := list(self._take_slice(keys)):
                await self._append(rows)
            bounds = await self._store.delete_records(METADATA_LOG, base)
            replica.start = bounds.start
            replica.epochs.trim(bounds.start)
        except (StoreError, OffsetConflict) as error:  # the log is whole all the same, and longer
            logger.warning("the metadata log is not compacted: %s", error)

    def _take_slice(self, keys: Iterator[str]) -> Iterator[KeyChange]:
        """The next keys, with the values they have now; none where all keys were taken."""
        taken = 0
        for key in keys:
            if (value := self._latest.get(key)) is not None:
                yield key, value
                taken += _size(key, value)
                if taken >= _SLICE:
                    return


def _advise(error: StoreError) -> StoreError:
    """The leader's disk takes nothing: with what an operator can do about that."""
    other = "or have another broker lead @registry: korvet-fast partition lead @registry 0 --broker N"
    return StoreError(f"{error.detail}; {other}", logged=error.logged)


def _unpack(batches: Buffer) -> list[KeyChange]:
    """Raises `StoreError`."""
    try:
        return list(unpack_changes(batches))
    except CodecError as error:
        raise StoreError(f"{METADATA_LOG}: a batch is no change of keys: {error}") from error


def _read_unclean(value: bytes | None, known: int) -> int:
    if value is None:
        return 0
    found = read_unclean(value, -1)
    if found >= 0:
        return found
    logger.error("%s: the key %r is damaged; the last known value, %d, counts", METADATA_LOG, UNCLEAN, known)
    return known


def _set(values: dict[str, bytes], key: str, value: bytes | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _size(key: str, value: bytes | None) -> int:
    return 0 if value is None else len(key.encode()) + len(value) + _ROW
