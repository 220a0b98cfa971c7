"""Committed offsets of all groups: OffsetCommit, OffsetFetch, OffsetDelete, and their retention."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from korvet_fast.config import Settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.fair_queue import BackgroundPace, Pace
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.groups.groups import Groups
from korvet_fast.core.groups.partitions import CoordinatorPartitions
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.groups.text.group import TextGroup
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import NONE, Errors, StoreError

log = logging.getLogger(__name__)
_FEW = 64  # partitions looked up without a check of the time
_UNAVAILABLE = Errors.COORDINATOR_NOT_AVAILABLE


class Offsets:
    """Commits, reads and removes the offsets of all groups."""

    def __init__(
        self, clock: Clock, settings: Settings, partitions: CoordinatorPartitions, groups: Groups, topics: Topics
    ) -> None:
        self._clock = clock
        self._partitions = partitions
        self._runtimes = partitions.runtimes
        self._groups = groups
        self._topics = topics
        self._max_metadata = settings.number("offset.metadata.max.bytes")
        self._retention = settings.number("offsets.retention.minutes") * 60_000
        self._waits_for_store = False  # to remove offsets whose retention time is over

    async def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        retention_ms: int = -1,
        knows_epochs: bool = False,
        pace: Pace | None = None,
    ) -> dict[TopicPartition, Errors]:
        """Commit offsets, durable on return; an error for each partition. Generation -1, no ids: a client, no member.

        `generation` may be a member epoch; `knows_epochs`: the client knows the difference (KIP-848). `retention_ms`
        -1: as `offsets.retention.minutes` says. With a `pace`, other requests run meanwhile; the caller makes sure that
        no later commit overtakes this one.
        """
        unseen = NONE if all(map(self._exists, offsets)) or await self._refresh_topics() else _UNAVAILABLE
        errors, changes = await self._validate(offsets, retention_ms, pace)
        # No await until the commit is handed over: the group that is asked is the group that takes the offsets.
        error = unseen or self._partitions.error_of(group_id)
        runtime = self._runtimes.get(group_id)
        if not error and runtime is None:
            unknown = Errors.GROUP_ID_NOT_FOUND if knows_epochs else Errors.ILLEGAL_GENERATION
            error = unknown if generation >= 0 else self._runtimes.refuse_new(group_id, joins=False)
            runtime = self._runtimes.create(group_id) if not error else None
        if not error and runtime is not None:
            if isinstance(runtime.group, ConsumerGroup):
                error = runtime.group.commit(member_id, generation, offsets, knows=knows_epochs)
            elif isinstance(runtime.group, TextGroup):
                error = runtime.group.commit(member_id, generation, offsets, self._clock.monotonic())
            else:
                error = runtime.group.commit(member_id, instance_id, generation, self._clock.monotonic())
        if error:
            errors = dict.fromkeys(offsets, error)
        if runtime is not None:
            if changes and not error and (error := await runtime.commit(changes)):
                errors |= dict.fromkeys(changes, error)
            runtime.forget_if_vacant()
        return errors

    async def _validate(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], retention_ms: int, pace: Pace | None
    ) -> tuple[dict[TopicPartition, Errors], dict[TopicPartition, OffsetAndMetadata | None]]:
        """An error for each partition, and the offsets to store for the partitions without one."""
        now = self._clock.wall()
        expires_at = now + retention_ms if retention_ms >= 0 else -1
        errors: dict[TopicPartition, Errors] = {}
        changes: dict[TopicPartition, OffsetAndMetadata | None] = {}
        for partition, offset in offsets.items():
            topic = self._topics.get(partition.topic)
            if topic is None or not 0 <= partition.partition < len(topic.partitions):
                errors[partition] = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif len(offset.metadata.encode()) > self._max_metadata:
                errors[partition] = Errors.OFFSET_METADATA_TOO_LARGE
            else:
                errors[partition] = NONE
                changes[partition] = OffsetAndMetadata(
                    offset.offset, offset.leader_epoch, offset.metadata, now, topic.id, expires_at
                )
            if pace is not None and pace.due():
                await pace.turn()
        return errors, changes

    def _exists(self, partition: TopicPartition) -> bool:
        """Whether this broker knows of the partition; another one may have made it lately."""
        topic = self._topics.get(partition.topic)
        return topic is not None and 0 <= partition.partition < len(topic.partitions)

    async def _refresh_topics(self) -> bool:
        """Take over the topics that other brokers have made, or made larger; whether the store answers."""
        try:
            await self._topics.refresh()
        except StoreError as error:
            log.debug("the topics of offsets cannot be read: %s", error.detail)
            return False
        return True

    async def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        member_id: str | None = None,
        epoch: int = -1,
        pace: Pace | None = None,
    ) -> tuple[Errors, dict[TopicPartition, OffsetAndMetadata]]:
        """The error, and the offsets of these partitions (None: of all).

        `member_id`, `epoch`: of the member that asks; None and -1: the client is no member. With a `pace`, other
        requests run meanwhile if there are many partitions. COORDINATOR_LOAD_IN_PROGRESS while this broker cannot tell
        whether the topic of an offset was deleted: told that there is no offset, its reader would begin anew.
        """
        error, found, unknown = await self._find(group_id, partitions, member_id, epoch, pace)
        if not unknown:
            return error, found
        # Another broker may have made the topic. A group that was loaded meanwhile may have newer ones than those read.
        runtime = self._runtimes.get(group_id)
        sure = await self._refresh_topics() and self._runtimes.get(group_id) is runtime
        error, found, unknown = await self._find(group_id, partitions, member_id, epoch, pace)
        if unknown and (not sure or not unknown.isdisjoint(self._topics.unreadable)):
            return Errors.COORDINATOR_LOAD_IN_PROGRESS, {}
        return error, found

    async def _find(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        member_id: str | None,
        epoch: int,
        pace: Pace | None,
    ) -> tuple[Errors, dict[TopicPartition, OffsetAndMetadata], set[str]]:
        """As `fetch`, of the topics that this broker knows; and the topics of offsets that it does not know."""
        error, runtime = self._partitions.error_of(group_id), self._runtimes.get(group_id)
        if not error and runtime is not None and isinstance(runtime.group, ConsumerGroup):
            error = runtime.group.fetch(member_id, epoch)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        unknown: set[str] = set()
        if error or runtime is None:
            return error, found, unknown
        stored, find_topic = runtime.offsets.stored, self._topics.by_id
        asked = list(stored) if partitions is None else partitions
        if len(asked) <= _FEW:
            pace = None
        for partition in asked:
            offset = stored.get(partition)
            if offset is not None:
                if find_topic(offset.topic_id) is not None:
                    found[partition] = offset
                else:
                    unknown.add(partition.topic)
            if pace is not None and pace.due():
                await pace.turn()
        return NONE, found, unknown

    async def delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> Errors:
        """Remove offsets; the error. The caller checks that no member reads these partitions."""
        error, group = self._groups.describe(group_id)
        runtime = self._runtimes.get(group_id)
        if error or group is None or runtime is None:
            return error
        changes: dict[TopicPartition, OffsetAndMetadata | None] = {
            partition: None for partition in partitions if partition in runtime.offsets.stored
        }
        if changes:
            error = await runtime.commit(changes)
            runtime.forget_if_vacant()
        return error

    # -- retention ---------------------------------------------------------------------------------------------------

    async def expire(self) -> None:
        """Remove offsets whose retention time is over, and groups that have neither offsets nor members."""
        runtimes = list(self._runtimes)  # of those loaded by now all topics are known then, if they still exist
        try:
            await self._topics.refresh()
        except StoreError as error:
            if not self._waits_for_store:
                log.warning("no committed offsets expire until the store answers: %s", error.detail)
            self._waits_for_store = True
            return
        self._waits_for_store = False
        pace = BackgroundPace()
        for runtime in runtimes:
            if pace.due():
                await pace.turn()
            if self._runtimes.get(runtime.id) is runtime:  # it may have gone meanwhile
                await self._expire(runtime, pace)

    async def _expire(self, runtime: GroupRuntime, pace: Pace) -> None:
        rest = iter(list(runtime.offsets.stored))
        while some := list(islice(rest, _FEW)):
            if pace.due():
                await pace.turn()
            if runtime.group.is_dead or not runtime.offsets.is_idle:
                return
            # The offsets checked are removed in the same step: an offset committed meanwhile has not expired.
            expired: dict[TopicPartition, OffsetAndMetadata | None] = {
                partition: None for partition in some if self._has_expired(runtime, partition)
            }
            if expired:
                await runtime.commit(expired)
        if runtime.group.is_dead or not runtime.offsets.is_idle:
            return
        if runtime.is_vacant and runtime.is_stored:
            await runtime.delete()
        runtime.forget_if_vacant()

    def _has_expired(self, runtime: GroupRuntime, partition: TopicPartition) -> bool:
        offset = runtime.offsets.stored.get(partition)
        if offset is None:
            return False
        if self._topics.by_id(offset.topic_id) is None:
            return partition.topic not in self._topics.unreadable
        if not runtime.group.is_empty:
            return False
        now = self._clock.settled_wall()
        # A group that never had members has no time at which it became empty.
        had_members = runtime.group.protocol_type is not None
        since = max(offset.committed_at, runtime.since) if had_members else offset.committed_at
        return now >= offset.expires_at if offset.expires_at >= 0 else now - since >= self._retention
