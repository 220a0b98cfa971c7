"""Files that several brokers keep copies of, as one store: each has its own files, and they agree on the leaders."""

from collections.abc import Callable, Sequence
from functools import partial

from korvet_fast.core.replication.leader_progress import LeaderProgress
from korvet_fast.core.replication.partition_state import PREFIX
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replication import Replication
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import (
    BATCHES,
    LARGE,
    Appending,
    Bounds,
    LeadershipGrant,
    LogFormat,
    OffsetConflict,
    ReadResult,
    RecordBatch,
    SegmentLimits,
)


class ReplicatedStore:
    """A `Store`. Durable means: flushed to the disks of all brokers in sync, which are min.insync.replicas at least."""

    layouts: tuple[str, ...] = (BATCHES,)
    syncs: bool = True
    producers = groups = plain_files = processes = None

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._local = replication.local
        self._registry = registry = replication.registry
        self._logs = replication.replicas.logs
        self.close_idle, self.read_times = self._local.close_idle, self._local.read_times
        self.load, self.save, self.scan, self.version = registry.load, registry.save, registry.scan, registry.version

    @property
    def shared(self) -> "ReplicatedStore":
        """See `Store.shared`."""
        return self

    async def open(self) -> None:
        """See `Store.open`."""
        await self._replication.open()

    async def close(self) -> None:
        """See `Store.close`."""
        await self._replication.close()

    # -- logs --------------------------------------------------------------------------------------------------------

    def open_log(self, log: str) -> OpenedLog:
        """See `LogStore.open_log`: this broker's copy, if it has one at that time."""
        return OpenedLog(partial(self._append, log), partial(self._read, log))

    def _append(
        self,
        log: str,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        """See `Append`. All is flushed, and on its way to the followers, whatever `sync` and `copies` say."""
        replica = self._logs.get(log)
        if replica is None:
            raise OffsetConflict(-1, fenced=True)
        replica.segment_limits = segment_limits
        return replica.append(batches, at)

    async def _read(self, log: str, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        replica = self._logs.get(log)
        if replica is None:
            return ReadResult([], start)
        return await replica.opened.read(start, max_bytes, limit, copy=copy)

    async def bounds(self, log: str) -> Bounds:
        """See `LogStore.bounds`: of this broker's copy."""
        bounds, replica = await self._local.bounds(log), self._logs.get(log)
        return bounds if replica is None else bounds._replace(durable=min(replica.high_watermark, bounds.durable))

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        """See `LogStore.find_time`: in this broker's copy."""
        return await self._local.find_time(log, ms, start)

    async def truncate(self, log: str, end: int) -> Bounds:
        """See `LogStore.truncate`: followers truncate what their leader does not have, and nobody else does."""
        raise KorvetError(Errors.INVALID_REQUEST, f"{log} has copies, which are not truncated by hand")

    async def delete_records(self, log: str, start: int) -> Bounds:
        """See `LogStore.delete_records`; the followers come after."""
        replica = self._find_leader_replica(log)
        if start > replica.high_watermark:
            raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"{log} is safe up to {replica.high_watermark}")
        return await self._take_start(replica, await self._local.delete_records(log, start))

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        """See `LogStore.apply_retention`; only segments below the high watermark go, as in Kafka (UnifiedLog)."""
        replica = self._find_leader_replica(log)
        bounds = await self._local.apply_retention_below(
            log, replica.high_watermark, older_than=older_than, larger_than=larger_than
        )
        return await self._take_start(replica, bounds)

    async def _take_start(self, replica: Replica, bounds: Bounds) -> Bounds:
        replica.start = bounds.start
        replica.epochs.trim(bounds.start)
        return await self.bounds(replica.name)

    def _find_leader_replica(self, log: str) -> Replica:
        replica = self._logs.get(log)
        if replica is None or replica.progress is None:
            raise KorvetError(Errors.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {log}")
        return replica

    async def drop(self, log: str) -> None:
        """See `LogStore.drop`. Each broker removes its copy when the topic's document is gone."""
        key = PREFIX + log
        while (document := await self._registry.load(key)) is not None:
            if await self._registry.save(key, None, document):
                break

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        """See `LogStore.durability_error`."""
        brokers = self._replication.brokers
        if copies > len(brokers):
            return f"min.insync.replicas={copies}, but replication.peers names {len(brokers)} brokers"
        replica = self._logs.get(log) if log is not None else None
        progress = replica.progress if replica is not None else None
        if isinstance(progress, LeaderProgress) and not progress.suffices:
            isr = ", ".join(map(str, sorted(progress.isr)))
            return f"{log}: too few brokers are in sync, {isr}, and min.insync.replicas={copies}"
        return None

    # -- what several brokers share ----------------------------------------------------------------------------------

    def declare(self, log: str, log_format: LogFormat) -> None:
        """See `SharedStore.declare`: there is one format."""

    async def acquire(
        self, log: str, log_format: LogFormat, *, epoch: int, floor: int, durable: int = 0
    ) -> LeadershipGrant:
        """See `SharedStore.acquire`, but for `floor`: the leader has all safe records, and goes on at its end."""
        replica = await self._replication.replicas.acquire(log, epoch)
        assert replica.progress is not None, "nothing was awaited since it began to lead"
        return LeadershipGrant(await self.bounds(log), replica.progress.epoch, replica.end)

    async def is_leader(self, log: str) -> bool:
        """See `SharedStore.is_leader`."""
        return await self._replication.replicas.is_leader(log)

    def notify(
        self, log: str, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None = None
    ) -> Callable[[], None]:
        """See `SharedStore.notify`: only the leader appends, so that nobody has to be told."""
        return lambda: None

    def on_data_loss(self, lost: Callable[[str], None]) -> None:
        """See `SharedStore.on_data_loss`: safe records survive, so nobody has to be told."""
