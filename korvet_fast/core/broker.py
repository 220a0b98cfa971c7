"""The broker behind the wire: topics, producer ids and the work in the background, over one store."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial

from korvet_fast.config import Settings
from korvet_fast.config_acl import ACL
from korvet_fast.core.acls.authorizer import Authorizer, read_super_users
from korvet_fast.core.acls.registry import AclRegistry
from korvet_fast.core.audit import AuditLog, open_audit_log
from korvet_fast.core.authentication.oauth_server import TokenVerifier
from korvet_fast.core.authentication.users import Users
from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.broker_state import BrokerState
from korvet_fast.core.certificate_end import CertificateEnd
from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.identity import ClusterIdentity
from korvet_fast.core.cluster.leader_directory import LeaderDirectory
from korvet_fast.core.cluster.leader_reconciler import LeaderReconciler
from korvet_fast.core.cluster.producer_ids import ProducerIds
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.generation import MetadataVersion, StoreGeneration
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.coordinator import GroupCoordinator
from korvet_fast.core.metadata_sync import MetadataSync
from korvet_fast.core.network_use import NetworkUse
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.idle import settle_idle
from korvet_fast.core.partition.loss_journal import Loss, LossJournal
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.partition.producer_state import ProducerLimit
from korvet_fast.core.quotas.client_quotas import ClientQuotas
from korvet_fast.core.quotas.registry import QuotaRegistry
from korvet_fast.core.replication.follower_reads import FollowerPartition, find_follower, wake_consumers
from korvet_fast.core.replication.placement import Placement
from korvet_fast.core.replication.replica_selector import make_selector
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.request_times import RequestTimes
from korvet_fast.core.timing_wheel import TimingWheel
from korvet_fast.core.topic_config import check_store
from korvet_fast.core.topics.topic import Topic
from korvet_fast.core.topics.topics import Topics
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

_RETRY_INTERVAL = 1.0  # seconds between two attempts at what failed
_TAKE_OVER_INTERVAL = 1.0  # seconds after which ACLs and quotas that other brokers have added hold here too
_ACL_PATIENCE = 5  # seconds that ACLs hold at least while the store does not tell them
_IDLE_INTERVAL = 60.0  # seconds after which a log that nobody used is closed
_CLOSE_TIMEOUT = 5.0  # seconds that work in the background has to end in when the broker stops
_HAND_OVER_INTERVAL = 0.02  # seconds between two looks at whether the others have taken over
_SKIPPED_EPOCHS = 1000  # leader epochs left out when the server's history broke


class Broker:
    """A broker over one store. Call `open`, use its parts, then call `leave` and `close`.

    Raises `SettingError` for settings that contradict each other.
    """

    deadlines: TimingWheel  # of produces, from `open` on
    listeners: Sequence[Endpoint] = ()  # where it is listened, by number, from when clients are served
    network_use: Callable[[], NetworkUse] | None = None  # from when clients are served
    certificate_ends: Callable[[], Sequence[CertificateEnd]] | None = None  # of listeners with TLS
    audit: AuditLog | None = None  # from `open` on, if settings name a file
    tokens: TokenVerifier | None = None  # who judges tokens of OAUTHBEARER, from when clients are served
    state = BrokerState.STARTING
    failed_produces = 0  # requests of Kafka's protocol of which something was refused or failed
    _restored = 0  # the store's generation in which lost documents were last written again

    def __init__(
        self, store: Store, settings: Settings, clock: Clock | None = None, replication: Replication | None = None
    ) -> None:
        """`replication`: where the store is files that several brokers keep copies of."""
        self.settings = settings
        self.replication, self._store, self.read_store_times = replication, store, store.read_times
        self.clock = clock = clock or Clock()
        self.log = log = RateLimitedLog(clock.monotonic)
        self.tasks, self.generation = BackgroundTasks(log), StoreGeneration()
        metadata = MetadataVersion()
        self._identity, self._directory = ClusterIdentity(store), LeaderDirectory(store, metadata)
        self.cluster = Cluster(
            store, clock, metadata, settings, lambda news: self.metadata_sync.sync_soon(news), replication is not None
        )
        self._collaborators = PartitionCollaborators(
            store,
            clock,
            self.tasks,
            self.generation,
            metadata,
            LossJournal(clock),
            ProducerLimit(
                settings.number("max.producers"), None if store.producers is None else store.producers.forget_producer
            ),
            lambda: self.cluster.refresh_soon(),
            log,
        )
        self.recovery_queue = self._collaborators.recovery_queue
        named = replication.replicas if replication is not None else None
        self._leaders = LeaderReconciler(self.cluster, self._directory, log, named)
        placement = Placement(replication.brokers, settings) if replication is not None else None
        self.topics = Topics(self._collaborators, settings, self._leaders.reconcile, self.cluster, placement)
        self.replica_selector = make_selector(settings, replication, self.cluster)
        if replication is not None:
            replication.on_change = self.cluster.refresh_soon
        self.authorizer = authorizer = _make_authorizer(settings)  # None: everybody may do everything
        self.acls = _make_registry(store, settings, self.generation, authorizer)
        self.quota_registry = QuotaRegistry(store, self.generation, ClientQuotas(clock.monotonic))
        self.quotas = self.quota_registry.quotas
        groups = GroupCollaborators(store, clock, self.tasks, self.generation, log)
        self.groups = GroupCoordinator(groups, settings, self.cluster, self.topics, authorizer)
        self.metadata_sync = MetadataSync(
            self.tasks, self.cluster, self._directory, self._leaders, self.topics, self.groups, log
        )
        self._producer_ids = ProducerIds(store, self.generation)
        # A leader of the metadata log that is cut off reads former values (`_refresh`).
        self.users = Users(store, log, self.cluster.holds_lease if replication is not None else lambda: True)
        self.storage_error = partial(store.durability_error, None, sync=False, copies=1)  # why no record can be kept
        self.request_times: defaultdict[str, RequestTimes] = defaultdict(RequestTimes)  # by Kafka's name of the API
        self._stop = asyncio.Event()

    @property
    def node_id(self) -> int:
        return self.cluster.id

    @property
    def cluster_id(self) -> str:
        return self._identity.cluster_id

    @property
    def losses(self) -> Sequence[Loss]:
        """The losses of stored records that this broker found since its start, oldest first."""
        return self._collaborators.losses.losses

    async def open(self, addresses: Sequence[Endpoint] = ()) -> None:
        """Open the store and everything in it, and lead what falls to this broker.

        `addresses`: what clients are told to connect to, in the order of the listeners. Raises `StoreError`,
        `TooFewThreads`, or `SettingError` if another broker has this one's `node.id` or the audit log cannot be
        written; what was opened is then closed again.
        """
        check_store(self.settings, self._store)
        self.deadlines = TimingWheel()
        async with AsyncExitStack() as undo:
            self.audit = open_audit_log(self.settings, self.clock)
            undo.push_async_callback(_close, self.audit)
            await self._store.open()
            for close in (self._store.close, self.tasks.wait, self.cluster.close):  # the last one first
                undo.push_async_callback(close)
            await self._identity.begin()
            self.generation.lowest_epoch = self._identity.epoch
            if self._store.shared is not None:
                self._store.shared.on_data_loss(self._change_history)
            if self.acls is not None:
                await self.acls.refresh()
            await self.quota_registry.refresh()
            await self.cluster.join(addresses)
            if self._store.shared is not None:
                self.tasks.keep(self.cluster.run)
            await self.topics.open()  # at once: the cluster is watched from now on, and calls `refresh`
            await self.cluster.serve()
            await self.metadata_sync.wait()
            await self.groups.open()
            undo.pop_all()
        repeated = [
            (self.settings.number("log.retention.check.interval.ms") / 1000, self._clean),
            (_IDLE_INTERVAL, self._close_idle),
            (_RETRY_INTERVAL, self.topics.end_deletions),
        ]
        if self._store.shared is not None:
            repeated += [(_RETRY_INTERVAL, self._retry_failed), (_TAKE_OVER_INTERVAL, self.quota_registry.refresh)]
            if self.acls is not None:
                refresh = self.acls.refresh if self.replication is None else partial(_refresh, self.acls, self.cluster)
                repeated += [(_TAKE_OVER_INTERVAL, refresh), (_TAKE_OVER_INTERVAL, self.acls.expire)]
        for seconds, work in repeated:
            self.tasks.keep(partial(self._repeat, seconds, work))
        self.state = BrokerState.RUNNING

    async def leave(self) -> None:
        """Have the other brokers take over this broker's partitions, wait for them, then lead nothing any more."""
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        if self._store.shared is None:
            return
        clock, handing = self.clock, self.tasks.start(self._hand_over())
        until = clock.monotonic() + self.settings.number("broker.session.timeout.ms") / 1000
        while not handing.done() and self.cluster.holds_lease() and clock.monotonic() < until:
            await clock.sleep(_HAND_OVER_INTERVAL)
        for partition in self._list_leader_partitions():
            partition.leader.resign("this broker is stopping")

    async def _hand_over(self) -> None:
        try:
            await self.topics.refresh()  # deleted topics are not to be saved
            await self.topics.save()  # the brokers that take over have little to read then
            await self.cluster.leave()
            # Where an operator names the leaders, nobody takes over unasked.
            while self.replication is None and self._list_leader_partitions() and not self.cluster.alone:
                await self.clock.sleep(_HAND_OVER_INTERVAL)
        except StoreError as error:
            logger.warning(
                "the other brokers cannot be told that this broker stops, and take over when its session times out: %s",
                error.detail,
            )

    def _list_leader_partitions(self) -> list[Partition]:
        return [partition for topic in self.topics for partition in topic.partitions if partition.leadership.leads]

    def drain(self) -> None:
        """Long polls answer at once from now on."""
        self._collaborators.draining.set()
        for topic in self.topics:
            for partition in topic.partitions:
                partition.high_watermark.wake()
        if self.replication is not None:
            wake_consumers(self.replication.replicas)

    async def close(self) -> None:
        """Save what is only in memory, mark the stop as clean, close the store. Raises `StoreError`."""
        self.state = BrokerState.SHUTTING_DOWN
        self.drain()
        self._stop.set()
        self.groups.close()
        await self.cluster.close()
        # Tasks may try a server that does not answer for longer than a stop may take.
        ending = asyncio.ensure_future(self.tasks.wait())
        await asyncio.wait([ending], timeout=_CLOSE_TIMEOUT if self._store.shared is not None else None)
        try:
            if self.cluster.holds_lease():
                await self.topics.save()
            await self._identity.end()
        finally:
            try:
                await self._store.close()
            finally:
                await _close(self.audit)

    def now(self) -> int:
        """Milliseconds since 1970, as `Partition.append` asks for them."""
        return self.clock.wall()

    def leader_partitions(self, topic: str) -> Topic | None:
        """The topic, to take several partitions from; None if there is none, or if this broker leads nothing now.

        This broker leads the partitions whose `leadership.leads` is true. For all others `partition` raises the error.
        """
        return self.topics.get(topic) if self._leaders.is_valid else None

    def partition(self, topic: str, index: int) -> Partition:
        """A partition that this broker leads.

        Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
        """
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            self.cluster.refresh_soon()  # another broker may have made it
            raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {topic!r}")
        partition = found.partitions[index]
        if not partition.leadership.leads or not self._leaders.is_valid:
            self.cluster.refresh_soon()
            raise KorvetError(Errors.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {partition.name}")
        return partition

    def local_replica(self, topic: str, index: int) -> Partition | FollowerPartition:
        """A partition that this broker leads, or that it has a copy of. Raises as `partition`."""
        if self.replication is None:
            return self.partition(topic, index)
        found = self.topics.get(topic)
        if found is not None and 0 <= index < len(found.partitions):
            partition = found.partitions[index]
            if not partition.leadership.leads:
                draining = self._collaborators.draining
                copy = find_follower(self.replication.replicas, partition.name, found.id.hex(), draining)
                if copy is not None:
                    return copy
        return self.partition(topic, index)

    def find_leader(self, topic: Topic, index: int) -> tuple[int, int]:
        """The id of the broker that leads a partition, and its leader epoch.

        The id is -1 while no broker leads; the epoch is then the last one that is known, or -1.
        """
        partition = topic.partitions[index]
        epoch, broker = self._directory.find(topic.id, index)
        leadership = partition.leadership
        if leadership.leads and self._leaders.is_valid and (broker < 0 or leadership.epoch > epoch):
            return self.node_id, leadership.epoch
        return broker, epoch if broker >= 0 else max(epoch, leadership.epoch)

    def find_replicas(self, topic: Topic, index: int) -> tuple[Sequence[int], Sequence[int]]:
        """The ids of the brokers that have copies of a partition, and of those in sync; none where nobody says."""
        state = self.replication.replicas.find_state(f"{topic.name}:{index}") if self.replication is not None else None
        return (topic.replicas[index], state.isr) if state is not None else ((), ())

    async def new_producer(self) -> tuple[int, int]:
        """A producer id never given out before, and its epoch 0."""
        return await self._producer_ids.next(), 0

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Call `work` every so many seconds, until the broker stops."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stop.wait()
                return
            try:
                await work()
            except StoreError as error:  # the heartbeats of the cluster tell that the store does not answer
                logger.debug("background work is tried again: %s", error.detail)

    async def _clean(self) -> None:
        silence = self.settings.number("producer.id.expiration.ms") / 1000
        await self.apply_retention(self.clock.monotonic() - silence)

    async def _close_idle(self) -> None:
        try:
            await self._store.close_idle(self.topics.has_partition)
        except StoreError as error:
            self.log.warn("idle", f"logs that nobody uses stay open: {error.detail}")
        await settle_idle([partition for topic in self.topics for partition in topic.partitions])

    async def _retry_failed(self) -> None:
        """Try again what failed: lost documents, telling the others which partitions this broker leads, recoveries."""
        await self._restore()
        await self.metadata_sync.tell()
        await self.recovery_queue.recover_all()

    def _change_history(self, why: str) -> None:
        """The store's history changed: acquire all logs of this broker anew before anything else is appended."""
        logger.error(
            "%s: this broker acquires all its partitions again, and reports the lost records of each",
            why,
        )
        self.generation.number += 1
        self.cluster.former.note(self.cluster.members, self.clock.monotonic() + self.cluster.lease)
        led = self._list_leader_partitions()
        # The server may have forgotten the last epochs, and where the old history lives on, brokers may still get some.
        known = max((partition.leadership.epoch for partition in led), default=-1)
        lowest = max(self.generation.lowest_epoch, known, self._directory.highest)
        self.generation.lowest_epoch = _SKIPPED_EPOCHS + lowest
        for partition in led:
            partition.leader.change_history(why)
        self.recovery_queue.gate = self.tasks.start(self._rejoin())
        self.tasks.start(self.recovery_queue.recover_all())

    async def _rejoin(self) -> None:
        """Find out what this broker still leads: in the new history others may lead, or not know this broker."""
        await self._restore()
        await self.cluster.poll()
        await self.metadata_sync.wait()

    async def _restore(self) -> None:
        """Write the documents again that the registry lost when the store's history changed."""
        number = self.generation.number
        if number != self._restored:
            try:
                await self._identity.restore()
                await self._producer_ids.restore()
                await self.topics.refresh()
                if self.acls is not None:
                    await self.acls.refresh()
                await self.quota_registry.refresh()
                self.groups.partitions.restore()
            except StoreError as error:
                logger.warning("the registry forgot documents that cannot be written again yet: %s", error.detail)
            else:
                self._restored = number

    async def apply_retention(self, producers_before: float) -> None:
        """Apply retention to all partitions, and forget producers that were silent since this monotonic time (s)."""
        pace = BackgroundPace()
        for topic in list(self.topics):
            for partition in list(topic.partitions):
                if pace.due():
                    await pace.turn()
                if not partition.leadership.leads:
                    continue
                partition.producers.expire(producers_before)
                try:
                    await partition.log.apply_retention()
                except StoreError as error:
                    self.log.fail("retention", f"{partition.name}: retention failed: {error}")
                except KorvetError:
                    continue  # another broker was named meanwhile, or the topic was deleted


async def _close(audit: AuditLog | None) -> None:
    """Have a thread wait for the last lines of the audit log, if there is one."""
    if audit is not None:
        await asyncio.get_running_loop().run_in_executor(None, audit.close)


def _make_authorizer(settings: Settings) -> Authorizer | None:
    if settings.text("authorizer") != ACL:
        return None
    super_users = read_super_users(settings.text("super.users"))
    return Authorizer(super_users, everyone=settings.flag("allow.everyone.if.no.acl.found"))


def _make_registry(
    store: Store, settings: Settings, generation: StoreGeneration, authorizer: Authorizer | None
) -> AclRegistry | None:
    if authorizer is None:
        return None
    patience = max(_ACL_PATIENCE, settings.number("broker.session.timeout.ms") / 1000)
    return AclRegistry(store, generation, authorizer, round(patience / _TAKE_OVER_INTERVAL))


async def _refresh(acls: AclRegistry, cluster: Cluster) -> None:
    """Read the ACLs, unless they may be those of a leader of the metadata log that is cut off. Raises `StoreError`."""
    if cluster.holds_lease():
        await acls.refresh()
