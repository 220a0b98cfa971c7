"""The coordinator partitions of this broker: acquired, released, loaded, and loaded again after failures.

Each group belongs to a partition (`documents.partition_for`). The list of brokers decides which of them coordinates a
partition (`Cluster.preferred_leaders`), so brokers with the same list agree. Until all of them have the new list, the
former coordinator goes on; then it releases the partition for the new one (`ownership`).
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final

from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.lease import Lease
from korvet_fast.core.eager import gather_bounded
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.documents import (
    PARTITIONS,
    group_key,
    is_newer,
    partition_for,
)
from korvet_fast.core.groups.ownership import PartitionOwnership
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.groups.runtimes import GroupRuntimes
from korvet_fast.core.groups.store import CoordinatorFenced, GroupDocuments
from korvet_fast.errors import NONE, Errors, StoreError

log = logging.getLogger(__name__)

_AGAIN: Final = 1.0  # seconds between two attempts to load groups that the store did not give
_TOPIC_ID: Final = b"consumer groups\0"  # coordinator partitions are assigned like the partitions of this topic


class CoordinatorPartitions:
    """`runtimes`: the groups of these partitions, as far as they are loaded."""

    def __init__(self, given: GroupCollaborators, cluster: Cluster, config: GroupConfig) -> None:
        self._given = given
        self._cluster = cluster
        self._ownerships = [PartitionOwnership(given.store, each, cluster.incarnation) for each in range(PARTITIONS)]
        self._documents = GroupDocuments(given, config)
        self.runtimes = GroupRuntimes(given, config, self._documents, self._ownerships, self._reload)
        self._coordinated: set[int] = set()  # the partitions whose groups this broker answers for
        self._unloaded: set[int] = set()  # of those, still to be loaded
        self._lease = Lease(cluster)
        self._blocked: dict[int, float] = {}  # by partition that another broker still owns: since when, monotonic
        self._unreleased: set[int] = set()  # given up, but the store still names this broker as the owner
        self._failed: dict[int, dict[str, GroupRuntime]] = {}  # by partition: groups that have to be loaded again
        self._stale: dict[int, dict[str, GroupRuntime]] = {}  # by partition given up: groups the store may have lost
        self._reconciling = asyncio.Lock()
        self._stop = asyncio.Event()

    def find(self, group_id: str) -> int:
        """The id of the broker that coordinates a group; -1 if none does."""
        return self._cluster.preferred_leaders(_TOPIC_ID, PARTITIONS)[partition_for(group_id)]

    def error_of(self, group_id: str) -> Errors:
        """The error if this broker cannot answer for a group now; `NONE` if it can."""
        partition = partition_for(group_id)
        if partition not in self._coordinated or not self._lease.is_valid:
            self._cluster.refresh_soon()
            return Errors.NOT_COORDINATOR
        loading = partition in self._unloaded or group_id in self._failed.get(partition, ())
        return Errors.COORDINATOR_LOAD_IN_PROGRESS if loading else NONE

    def refuse(self, group_id: str) -> Errors:
        """As `error_of`, for requests that must name a group."""
        return self.error_of(group_id) if group_id else Errors.INVALID_GROUP_ID

    @property
    def is_loading(self) -> bool:
        """Whether groups of this broker are still to be loaded."""
        return bool(self._unloaded or self._failed)

    async def pause(self, seconds: float) -> bool:
        """Wait so many seconds; False if the broker stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        return not self._stop.is_set()

    def close(self) -> None:
        """Give up all partitions: requests that wait are told to find another coordinator. Writes go on."""
        self._stop.set()
        self._resign(set(self._coordinated))

    # -- acquiring and releasing -------------------------------------------------------------------------------------

    async def reconcile(self) -> None:
        """Acquire the partitions that are this broker's now, and release all others.

        Raises `StoreError`; then call it again.
        """
        async with self._reconciling:
            if self._stop.is_set():
                return
            await self._documents.open()
            if self._lease.renew():
                self._resign(set(self._coordinated))
            coordinators = self._cluster.preferred_leaders(_TOPIC_ID, PARTITIONS)
            mine = {partition for partition, broker in enumerate(coordinators) if broker == self._cluster.id}
            if self._cluster.is_member:  # the present coordinator's groups are newer
                self._stale = {partition: groups for partition, groups in self._stale.items() if partition in mine}
            self._unreleased = (self._unreleased | self._coordinated) - mine
            self._resign(self._coordinated - mine)
            await gather_bounded(list(self._unreleased), self._release)
            self._unloaded |= mine - self._coordinated
            self._coordinated |= mine
            await gather_bounded(list(self._unloaded), self._load)

    def _resign(self, partitions: set[int]) -> None:
        if not partitions:
            return  # as mostly: there may be ten thousand groups to look at
        self._coordinated -= partitions
        self._unloaded -= partitions
        gone = self.runtimes.unload(partitions)
        for partition in partitions:
            gone += self._failed.pop(partition, {}).values()
            self._blocked.pop(partition, None)
        for runtime in gone:  # if the store's history broke since, nobody else may know them
            if runtime.store.known and runtime.generation != self._given.generation.number:
                self._stale.setdefault(partition_for(runtime.id), {})[runtime.id] = runtime

    async def _release(self, partition: int) -> None:
        await self._ownerships[partition].release()
        self._unreleased.discard(partition)

    async def _load(self, partition: int) -> None:
        """Acquire and load a partition, unless another broker that lives owns it: that broker will release it."""
        now = self._given.clock.monotonic()
        patient = now - self._blocked.setdefault(partition, now) < self._cluster.lease
        ownership, number = self._ownerships[partition], self._given.generation.number
        if not await ownership.acquire(self._cluster.id, lambda process: patient and self._cluster.has(process)):
            self._cluster.refresh_soon()
            return
        self._blocked.pop(partition, None)
        documents = await self._documents.read(partition)
        try:
            for group_id, runtime in list(self._stale.get(partition, {}).items()):
                await self._write_again(runtime, documents.setdefault(group_id, {}))
        except CoordinatorFenced:
            self._cluster.refresh_soon()
            return
        if partition in self._unloaded:
            self._unloaded.discard(partition)
            self._stale.pop(partition, None)
            for group_id, known in documents.items():
                self.runtimes.load(group_id, known).generation = number
            if number != self._given.generation.number:
                self.restore()  # the documents that were read are of the lost history

    # -- loading again -----------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Load all groups again after the store's history broke, and write lost documents again."""
        for runtime in self.runtimes:
            if runtime.generation != self._given.generation.number:
                self.runtimes.fail(runtime, CoordinatorFenced("the store may have lost its last changes"))

    def _reload(self, runtime: GroupRuntime) -> None:
        partition = partition_for(runtime.id)
        if partition not in self._failed:
            self._failed[partition] = {}
            self._given.tasks.keep(partial(self._reload_all, partition, self._failed[partition]))
        self._failed[partition][runtime.id] = runtime

    async def _reload_all(self, partition: int, failed: dict[str, GroupRuntime]) -> None:
        while failed and self._failed.get(partition) is failed:
            number = self._given.generation.number
            try:
                if not await self._ownerships[partition].verify(self._cluster.id):
                    log.warning("another broker has taken over the groups of coordinator partition %d", partition)
                    self._resign({partition})
                    self._cluster.refresh_soon()
                    return
                documents = await self._documents.read(partition)
                for group_id, runtime in list(failed.items()):
                    known = documents.get(group_id, {})
                    await self._write_again(runtime, known)
                    if self._failed.get(partition) is not failed:
                        return
                    if number != self._given.generation.number:
                        break  # the documents that were read are of the lost history
                    del failed[group_id]
                    self.runtimes.load(group_id, known)
            except (CoordinatorFenced, StoreError) as failure:
                log.debug("coordinator partition %d cannot be loaded yet: %s", partition, failure)
                await self.pause(_AGAIN)
        if self._failed.get(partition) is failed:
            del self._failed[partition]

    async def _write_again(self, runtime: GroupRuntime, known: dict[str, bytes]) -> None:
        """Write again the lost documents of a group: no generation is used twice, no committed offset is lost.

        `known`: the documents that the store has now; it is updated. Raises as `GroupStore.write`.
        """
        told = runtime.store.known
        key = group_key(runtime.id)
        forgot = key in told and is_newer(key, told[key], known.get(key))
        if forgot or runtime.generation != self._given.generation.number:
            changes: dict[str, bytes | None] = {
                key: document for key, document in told.items() if is_newer(key, document, known.get(key))
            }
            if changes:
                log.error("group %s: the store has lost %d changes; they are written again", runtime.id, len(changes))
                await self.runtimes.open_store(runtime.id, known).write(changes)
