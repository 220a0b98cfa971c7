"""Keeps up with the other brokers (topics, leaders, groups), and tells them what this one leads."""

import asyncio

from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.leader_directory import LeaderDirectory
from korvet_fast.core.cluster.leader_reconciler import LeaderReconciler
from korvet_fast.core.groups.coordinator import GroupCoordinator
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import StoreError
from korvet_fast.rate_limited_log import RateLimitedLog


class MetadataSync:
    """Takes over the other brokers' changes in the background. `running`: the task that does; None before the first."""

    def __init__(
        self,
        tasks: BackgroundTasks,
        cluster: Cluster,
        directory: LeaderDirectory,
        leaders: LeaderReconciler,
        topics: Topics,
        groups: GroupCoordinator,
        log: RateLimitedLog,
    ) -> None:
        self.running: asyncio.Task[None] | None = None
        self._tasks = tasks
        self._cluster = cluster
        self._directory = directory
        self._leaders = leaders
        self._topics = topics
        self._groups = groups
        self._log = log
        self._unreconciled = False  # the present leaders are to be compared with the preferred ones
        self._behind = False  # a change was seen that is still to be taken over

    def sync_soon(self, changed: bool) -> None:
        """Take over the other brokers' changes in the background. `changed`: the members of the cluster changed."""
        self._unreconciled = self._unreconciled or changed
        self._behind = True
        if self.running is None or self.running.done():
            self.running = self._tasks.start(self._catch_up())

    async def _catch_up(self) -> None:
        """Take over all changes; once more if another was seen meanwhile, which this round may have missed."""
        self._behind = False
        await self._sync()
        if self._behind:
            self.running = self._tasks.start(self._catch_up())

    async def wait(self) -> None:
        """Wait until the changes seen by now have been taken over; later ones are not waited for."""
        for _ in range(2 if self._behind else 1):
            if self.running is not None:
                await asyncio.wait([self.running])

    async def _sync(self) -> None:
        """Take over changes of topics and leaders, and acquire the partitions that this broker is to lead."""
        self._unreconciled = self._leaders.renounce(self._topics) or self._unreconciled
        try:
            await self._topics.refresh()
            own = self._cluster.id
            others = [member.id for member in self._cluster.members if member.id != own]
            if await self._directory.refresh(others) or self._unreconciled:
                self._unreconciled = False
                await self._leaders.reconcile(self._topics)
            await self._groups.partitions.reconcile()
        except Exception as error:
            self._unreconciled = True
            if not isinstance(error, StoreError):
                raise
            self._log.warn("changes", f"the other brokers' changes cannot be read: {error.detail}")
        await self.tell()

    async def tell(self) -> None:
        """Tell the other brokers which partitions this one leads."""
        if not self._cluster.holds_lease():
            return  # another broker may have this one's id by now
        try:
            await self._directory.tell(self._cluster.id, self._topics)
        except StoreError as error:
            self._log.warn("told", f"the other brokers cannot be told which partitions this one leads: {error.detail}")
