"""Fetch: record batches as they lie in the log, waiting for more if there are too few.

The bytes of the answer are dealt out among the partitions (`read_all`).
"""

from collections.abc import Sequence
from operator import gt
from typing import Final, TypeAlias

from korvet_fast.core.client_session import ClientSession, Refuse
from korvet_fast.core.eager import gather, gather_paced
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.replication.follower_reads import FollowerPartition
from korvet_fast.errors import KorvetError, forget_frames
from korvet_fast.types import Buffer

_MANY: Final = 200  # partitions between two looks at the clock
_AT_ONCE: Final = 64  # partitions read side by side

# Index of a partition, offset, most bytes, and the leader epoch that the client knows (-1: none).
FetchPosition: TypeAlias = tuple[int, int, int, int]


class PartitionFetch:
    """Whole batches from `offset` on, `max_bytes` of them at most; `records` holds their bytes, in parts.

    `partition` is None where nothing can be read, and `error` says why. `high_watermark` and `log_start` are those of
    the moment after reading, -1 where they are not known. `preferred_replica`: the broker to read from instead, or -1.
    `copy`: the records are read as copies.
    """

    __slots__ = (
        "copy",
        "error",
        "high_watermark",
        "index",
        "log_start",
        "max_bytes",
        "offset",
        "partition",
        "preferred_replica",
        "records",
    )

    def __init__(
        self,
        index: int,
        offset: int,
        max_bytes: int,
        partition: Partition | FollowerPartition | None = None,
        copy: bool = False,
    ) -> None:
        self.copy = copy
        self.index = index
        self.partition = partition
        self.offset = offset
        self.max_bytes = max_bytes
        self.error: KorvetError | None = None
        self.high_watermark = self.log_start = self.preferred_replica = -1
        self.records: list[Buffer] = []

    def describe(self) -> None:
        """Note the log's start and its high watermark, if known, for the answer."""
        if self.partition is not None:
            self.high_watermark = self.partition.told_high_watermark
            self.log_start = self.partition.log.start

    def refuse(self, error: KorvetError) -> None:
        """Note the error; nothing is read from this partition."""
        self.describe()
        self.partition = None
        self.error = forget_frames(error)

    def redirect(self, broker: int) -> None:
        """Send the client to another broker: nothing is read here."""
        self.describe()
        self.partition = None
        self.preferred_replica = broker

    async def read(self, left: int) -> int:
        """Read `left` bytes at most, but one batch at least if there is one; returns the bytes."""
        assert self.partition is not None
        most = self.max_bytes
        try:
            data = (await self.partition.read(self.offset, most if most < left else left, self.copy)).data
        except KorvetError as error:
            self.error = forget_frames(error)
            return 0
        self.records = data
        size = len(data[0]) if len(data) == 1 else sum(map(len, data))
        self.partition.high_watermark.fetched += size
        return size


async def fetch_one(
    session: ClientSession,
    topic: str,
    position: FetchPosition,
    max_bytes: int,
    min_bytes: int,
    max_wait_ms: int,
    rack: str | None = None,
) -> PartitionFetch:
    """As `fetch` for one partition."""
    outdated: list[PartitionFetch] = []
    (part,) = _find_partitions(session, topic, (position,), None, rack, outdated)
    if outdated:
        await _check_above_end(part)
    if (partition := part.partition) is not None:
        if max_wait_ms > 0 and partition.log.available_bytes(part.offset) < min_bytes:
            await _wait(session, [part], min_bytes, max_wait_ms)
        if (left := _find_limit(session, max_bytes)) > 0:
            await part.read(left)
        part.describe()
    return part


async def fetch(
    session: ClientSession,
    topics: Sequence[tuple[str, Sequence[FetchPosition]]],
    max_bytes: int,
    min_bytes: int,
    max_wait_ms: int,
    refuse: Refuse | None = None,
    rack: str | None = None,
) -> list[list[PartitionFetch]]:
    """Read from these partitions; returns for each topic its partitions, in the order of the positions.

    Waits until `min_bytes` can be read, unless there is an error or no position, for `max_wait_ms` at most. With
    `max_bytes` 0 nothing is read. `rack`: the client's, "" if it named none: copies of partitions that other brokers
    lead are read too (KIP-392). None: only partitions that this broker leads are read.
    """
    pace = session.pace()
    results = []
    outdated: list[PartitionFetch] = []  # at or above an end that another program may have moved
    for topic, positions in topics:
        placed: list[PartitionFetch] = []
        for start in range(0, len(positions), _MANY):
            placed += _find_partitions(session, topic, positions[start : start + _MANY], refuse, rack, outdated)
            if pace.due():
                await pace.turn()
        results.append(placed)
    if outdated:
        await gather_paced(outdated, _check_above_end, pace)
    parts = [part for placed in results for part in placed if part.partition is not None]
    if parts and len(parts) == sum(map(len, results)):  # an error is answered at once
        await _wait(session, parts, min_bytes, max_wait_ms)
    if (left := _find_limit(session, max_bytes)) > 0:
        await read_all(parts, left, pace)
    await pace.map(PartitionFetch.describe, parts)
    return results


def _find_limit(session: ClientSession, max_bytes: int) -> int:
    """How many bytes of records the answer may have: the least of the request, `fetch.max.bytes` and memory."""
    most = session.broker.settings.number("fetch.max.bytes")
    if max_bytes < most:
        most = max_bytes
    if most <= 0:
        return 0
    room = session.answer_room()
    return most if most < room else max(room, 1)


def _find_partitions(
    session: ClientSession,
    topic: str,
    positions: Sequence[FetchPosition],
    refuse: Refuse | None,
    rack: str | None,
    outdated: list[PartitionFetch],
) -> list[PartitionFetch]:
    """Find the partitions, and where in their logs to read. Those whose end may be out of date go to `outdated` too."""
    placed = []
    broker = session.broker
    find = broker.partition if rack is None or broker.replication is None else broker.local_replica
    selector = broker.replica_selector if rack else None
    copy = session.wants_copies
    for index, offset, max_bytes, epoch in positions:
        part = PartitionFetch(index, offset, max_bytes, None, copy)
        placed.append(part)
        try:
            if refuse is not None and (refusal := refuse(topic, index)) is not None:
                raise refusal
            partition = find(topic, index)
            if epoch != -1:
                partition.check_epoch(epoch)
            part.partition = partition
            if selector is not None and rack is not None:
                preferred = selector.select(f"{topic}:{index}", offset, rack)
                if preferred >= 0:
                    part.redirect(preferred)
                    continue
            log = partition.log
            if offset >= log.end and (log.entries_layout or (offset > log.end and log.is_shared)):
                outdated.append(part)
            elif not log.removed <= offset <= log.end:
                partition.check_offset(offset)
        except KorvetError as error:
            part.refuse(error)
    return placed


async def _check_above_end(part: PartitionFetch) -> None:
    """Check an offset at or above the end of its log as this broker knows it."""
    assert part.partition is not None
    try:
        await part.partition.check_above_end(part.offset)
    except KorvetError as error:
        part.refuse(error)


async def _wait(session: ClientSession, parts: list[PartitionFetch], min_bytes: int, max_wait_ms: int) -> None:
    """Wait until `min_bytes` can be read, the time is over, or the connection is closed."""
    missing = min_bytes
    for part in parts:
        if missing <= 0:
            return
        assert part.partition is not None
        missing -= part.partition.log.available_bytes(part.offset)
    if missing <= 0 or max_wait_ms <= 0 or session.closed:
        return
    logs = [(part.partition.log, part.offset) for part in parts if part.partition is not None]
    with DelayedFetch(logs, min_bytes) as delayed:
        session.delayed.add(delayed)
        try:
            await delayed.wait(max_wait_ms / 1000)
        finally:
            session.delayed.discard(delayed)


async def read_all(parts: Sequence[PartitionFetch], left: int, pace: Pace | None) -> None:
    """Deal out `left` bytes among the partitions, one after the other (KIP-74).

    All together give `left` bytes at most, and each what its own limit allows. Only the first partition that has
    anything gives one batch however large that is, also if its limit is 0. Partitions whose limits together fit into
    the rest are read side by side. The result is the same; it is shorter where a batch is larger than its partition's
    limit.
    """
    done, first = 0, True  # first: nothing has been read yet
    while done < len(parts) and (first or left > 0):
        wave = _plan(parts, done, left)
        if first or wave[0].max_bytes > 0 or len(wave) > 1:
            sizes = await gather([part.read(left) for part in wave])
            size = sum(sizes)
            if size > left or any(map(gt, sizes, [part.max_bytes for part in wave])):
                size = _trim(wave, sizes, left, first)
            left -= size
            first = first and size == 0
        done += len(wave)
        if pace is not None and done < len(parts) and pace.due():
            await pace.turn()


def _plan(parts: Sequence[PartitionFetch], done: int, left: int) -> list[PartitionFetch]:
    """The next partitions to be read side by side: one at least, and no more than their limits leave room for."""
    wave: list[PartitionFetch] = []
    for part in parts[done : done + _AT_ONCE]:
        assert part.partition is not None
        if part.offset < part.partition.high_watermark.offset:
            left -= part.max_bytes
            if wave and (left < 0 or part.max_bytes <= 0):
                break
            if part.max_bytes <= 0:
                return [part]
        wave.append(part)
    return wave


def _trim(wave: list[PartitionFetch], sizes: list[int], left: int, first: bool) -> int:
    """Drop batches beyond the limits, and from `wave` the partitions to read again; returns the bytes read.

    The bytes dropped count as read: the answer may be short. `first`: the first batch may be as large as it is.
    """
    used = 0
    for at, (part, size) in enumerate(zip(wave, sizes, strict=True)):
        if at and size > left - used:  # a batch before it was larger than planned
            for later in wave[at:]:
                later.records = []
            del wave[at:]
            return used
        if size > min(part.max_bytes, left - used) and not (first and used == 0):
            part.records = []
        used += size
    return used
