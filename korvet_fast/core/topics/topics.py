"""The topics: found by name or id, created, grown, altered, deleted; each kept as one document in the registry.

Where the store is shared, other brokers change them as well: `refresh` follows the registry.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Protocol

from korvet_fast.config import Settings
from korvet_fast.core.eager import gather_bounded
from korvet_fast.core.fair_lock import ChangeLock, Changer
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.partition.snapshot_saver import SnapshotSaver
from korvet_fast.core.topic_config import TopicConfig, fix, warn
from korvet_fast.core.topics.deletions import Members, TopicDeletions
from korvet_fast.core.topics.index import TopicIndex
from korvet_fast.core.topics.mutation_quota import MutationQuota
from korvet_fast.core.topics.registry import TopicRegistry
from korvet_fast.core.topics.topic import Document, Topic, check_new_name
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.types import ABSENT


class Placement(Protocol):
    """Says which brokers get copies of partitions (`core/replication/placement.py`)."""

    def place(self, partitions: int, factor: int, begin: int) -> Sequence[Sequence[int]]: ...

    def place_more(self, present: Sequence[Sequence[int]], total: int) -> Sequence[Sequence[int]]: ...

    def complete(self, configs: Mapping[str, str | None], factor: int) -> Mapping[str, str | None]: ...


_STEP = 64  # partitions made between two looks at the clock


class Topics(TopicIndex):
    """All topics of the cluster, and the partitions of each, of which this broker leads some.

    `reconcile` acquires the partitions of these topics that this broker is to lead, and resigns from the others.
    `unreadable`: the names of topics that are there and not here, as their documents cannot be read.
    `members`: the brokers that are there. `placement`: where copies go; None: the store decides. `quota`: how fast
    clients of this broker may create and delete.
    """

    def __init__(
        self,
        given: PartitionCollaborators,
        settings: Settings,
        reconcile: Callable[[Iterable[Topic]], Awaitable[None]],
        members: Members,
        placement: Placement | None = None,
    ) -> None:
        super().__init__(given)
        number = settings.number
        rate, burst = number("controller.mutation.rate"), number("controller.mutation.burst")
        self.quota = MutationQuota(rate, burst, given.clock.monotonic)
        self._reconcile = reconcile
        self._members = members
        self._placement = placement
        self._settings = settings
        self._registry = TopicRegistry(given.store, given.generation)
        self.changing = ChangeLock()  # reading never waits
        self._own = self.changing.open(self)  # for the broker's own work
        self._deletions = TopicDeletions(self._registry, members)
        self.unreadable: set[str] = set()

    @property
    def version(self) -> int:
        """Grows with every change, so that answers made from the topics can be kept."""
        return self._given.metadata.number

    def on_change(self, notice: Callable[[], None]) -> None:
        """Call `notice` whenever `version` grows; it may look at the topics when the loop has its next turn."""
        self._given.metadata.on_change = notice

    # -- the registry --------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load all topics of the registry; those whose documents cannot be read are left out. Raises `StoreError`.

        Where the store is not shared, this broker leads all partitions, and ends deletions that a crash cut short.
        """
        given = self._given
        async with self._own.turn():  # the cluster is watched already, and a change of it may call `refresh`
            if self._by_name:  # `refresh` came first
                await self._refresh()
            else:
                for name, packed in (await self._registry.load()).items():
                    with self._leave_out(name):
                        await self._take_in(name, packed)
            if given.store.shared is None:
                await self._deletions.end()
        if given.store.shared is None:
            states = await given.store.scan("state/")
            await gather_bounded(self._all(), lambda one: one.leader.acquire(states.get(f"state/{one.name}")))

    async def _read(self, name: str, packed: bytes) -> Topic:
        try:
            topic = Topic(self._given, name, packed, self._settings, made=0)
            partitions = Document.unpack(packed).partitions
        except StoreError as error:
            raise StoreError(f"topic {name!r}: {error.detail}") from error
        except KorvetError as error:
            raise StoreError(f"topic {name!r} was made by a broker of other settings: {error.detail}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # JSON, but not what a document has
            raise StoreError(f"topic {name!r}: its document is damaged: {error!r}") from error
        await _make_partitions(partial(topic.grow, self._given), 0, partitions)
        return topic

    async def _take_in(self, name: str, packed: bytes) -> Topic | None:
        """Add a topic that this broker does not know; None if there is none any more, as it is being deleted."""
        document = Document.unpack(packed)
        if document.id in self._deletions:
            return None
        topic = await self._read(name, packed)
        if document.deleting:
            self._deletions.add(topic)
            return None
        self._add(topic)
        return topic

    def _all(self) -> Iterator[Partition]:
        return (partition for topic in self for partition in topic.partitions)

    async def save(self) -> None:
        """Save the snapshots of all partitions that changed since they were saved."""
        async with self._own.turn():  # a partition that is being dropped must not be saved again
            savers = [one.saver for one in self._all() if one.leadership.leads]
            await gather_bounded([saver for saver in savers if not saver.is_saved], SnapshotSaver.save)

    async def refresh(self, changer: Changer | None = None) -> None:
        """Take over what other brokers changed in the registry since the last time. Raises `StoreError`.

        `changer`: the client that asks; None: the broker itself. The client sees all changes that it made before.
        """
        async with (changer or self._own).turn():
            await self._refresh()

    async def _refresh(self) -> None:
        documents = await self._registry.read_changes(self)
        if documents is None:
            return
        changed: list[Topic] = []
        for topic in list(self):
            packed = documents.by_name.get(topic.name)
            if packed != topic.packed:
                with self._leave_out(topic.name):
                    await self._apply_change(topic, packed)
                    changed.append(topic)
        for name, packed in documents.by_name.items():
            if name not in self._by_name:
                with self._leave_out(name):
                    added = await self._take_in(name, packed)
                    if added is not None:
                        changed.append(added)
        self.unreadable &= documents.by_name.keys() - self._by_name.keys()
        self._registry.mark_seen(documents)
        await self._reconcile([topic for topic in changed if self._by_id.get(topic.id) is topic])

    @contextmanager
    def _leave_out(self, name: str) -> Iterator[None]:
        """Go on with the other topics if the document of this one cannot be read."""
        try:
            yield
        except KorvetError as error:
            self.unreadable.add(name)
            self._given.log.fail(
                "unreadable",
                f"the document of topic {name!r} is left out until it changes (topics/{name} in @registry: restore a "
                f"copy of it, or start the version that wrote it): {error.detail}",
            )

    async def _apply_change(self, topic: Topic, packed: bytes | None) -> None:
        """Another broker changed the topic's document, or took it out."""
        document = Document.unpack(packed) if packed is not None else None
        if packed is None or document is None or document.deleting or document.id != topic.id:
            self._remove(topic)
            self._members.forget(topic.id)
            if document is not None and document.id == topic.id:
                self._deletions.add(topic)
            pace = BackgroundPace()
            for partition in topic.partitions:
                partition.leader.delete()
                if pace.due():
                    await pace.turn()
            return
        syncs = self._given.store.syncs
        config = TopicConfig(self._settings, document.configs, topic.config.fixed, syncs=syncs)
        topic.version, topic.replicas = document.version, document.replicas
        topic.configure(config)
        await _make_partitions(partial(self._add_partitions, topic), len(topic.partitions), document.partitions)
        topic.packed = packed
        self._given.metadata.advance()

    async def find(self, name: str, changer: Changer | None = None) -> Topic | None:
        """The topic of this name, even if another broker has just made it. Errors and `changer` as of `refresh`."""
        if name not in self._by_name:
            await self.refresh(changer)
        return self._by_name.get(name)

    # -- changes -------------------------------------------------------------------------------------------------

    # `changer`: the client that asks for a change; None: the broker itself.

    async def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str | None],
        changer: Changer | None = None,
        *,
        validate_only: bool = False,
        factor: int = -1,
    ) -> Topic:
        """A new topic; -1 partitions: `num.partitions`. With `validate_only` nothing is kept.

        `factor`: of replication; -1: `default.replication.factor`. Raises `KorvetError` INVALID_TOPIC_EXCEPTION,
        TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, POLICY_VIOLATION (more than
        `max.partitions`), INVALID_CONFIG, THROTTLING_QUOTA_EXCEEDED; or `StoreError`.
        """
        async with (changer or self._own).turn():
            await self._refresh()
            return await self._create(name, partitions, configs, validate_only, factor)

    async def auto_create(
        self,
        name: str,
        changer: Changer | None = None,
        configs: Mapping[str, str | None] = MappingProxyType({}),
        partitions: int = -1,
    ) -> Topic:
        """The topic of this name, created with `configs` and the broker's defaults if there is none.

        -1 partitions: `num.partitions`.

        Errors as `create`, but UNKNOWN_TOPIC_OR_PARTITION where the quota is exceeded: clients try again then.
        """
        try:
            if name not in self._by_name:
                self.quota.check()
            return await self._auto_create(name, changer or self._own, configs, partitions)
        except KorvetError as error:
            if error.error != Errors.THROTTLING_QUOTA_EXCEEDED:
                raise
            raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, error.detail) from None

    async def _auto_create(
        self, name: str, changer: Changer, configs: Mapping[str, str | None], partitions: int
    ) -> Topic:
        async with changer.turn():
            await self._refresh()
            if name in self._by_name:
                return self._by_name[name]
            try:
                return await self._create(name, partitions, configs, False, -1)
            except KorvetError:
                await self._refresh()  # another broker may have been faster
                if name not in self._by_name:
                    raise
                return self._by_name[name]

    async def _create(
        self, name: str, partitions: int, configs: Mapping[str, str | None], validate: bool, factor: int
    ) -> Topic:
        check_new_name(name)
        if name in self._by_name:
            raise KorvetError(Errors.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
        if name in self.unreadable:
            raise StoreError(f"topic {name!r} is there, but its document, topics/{name} in @registry, cannot be read")
        near = self.find_alike(name)
        if near is not None:
            raise KorvetError(
                Errors.INVALID_TOPIC_EXCEPTION, f"{name!r} differs from topic {near!r} only in '.' and '_'"
            )
        total = self._settings.number("num.partitions") if partitions == -1 else partitions
        self._check_total(total, total)
        replicas = self._place(total, factor)
        if self._placement is not None:
            configs = self._placement.complete(configs, len(replicas[0]))
        fixed, own = fix(self._settings, configs, self._given.store)
        overrides = TopicConfig(self._settings, own, fixed).overrides
        packed = Document(secrets.token_bytes(16), total, overrides, fixed, replicas=replicas).pack()
        topic = Topic(self._given, name, packed, self._settings, made=1)
        if validate:
            topic.partitions *= total  # one stands for all: to make 20,000 that nobody uses takes long
        else:
            self.quota.check()
            if not await self._registry.save(name, packed, ABSENT):
                raise KorvetError(Errors.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists, or is being deleted")
            self.quota.take(total)
            warn(name, fixed)
            await _make_partitions(partial(topic.grow, self._given), len(topic.partitions), total)
            self._add(topic)
            self._given.log.tell("created", f"topic {name}: created, {_count(total)}{_show(overrides)}")
            await self._reconcile([topic])
        return topic

    def _place(self, partitions: int, factor: int) -> Sequence[Sequence[int]]:
        """The replicas of a new topic's partitions; none where the store decides."""
        if self._placement is not None:
            return self._placement.place(partitions, factor, self.partition_count)
        if factor not in (-1, 1):
            raise KorvetError(Errors.INVALID_REPLICATION_FACTOR, f"one copy is kept, {factor} are asked for")
        return ()

    async def grow(
        self, topic: Topic, total: int, changer: Changer | None = None, *, validate_only: bool = False
    ) -> None:
        """More partitions, `total` in the end.

        Raises `KorvetError` INVALID_PARTITIONS, POLICY_VIOLATION, THROTTLING_QUOTA_EXCEEDED, or
        UNKNOWN_TOPIC_OR_PARTITION if the topic is gone.
        """
        async with (changer or self._own).turn():
            await self._refresh()
            have = len(topic.partitions)
            if total <= have:
                raise KorvetError(
                    Errors.INVALID_PARTITIONS, f"topic {topic.name!r} has {_count(have)}, {total} asked for"
                )
            self._check_total(total, total - have)
            if not validate_only:
                replicas = topic.replicas
                if self._placement is not None:
                    replicas = self._placement.place_more(replicas, total)
                document = topic.describe()._replace(partitions=total, replicas=replicas)
                await self._rewrite(topic, document, total - have)
                topic.replicas = replicas
                self._given.log.tell("grown", f"topic {topic.name}: {_count(total)}, {have} before")
                await _make_partitions(partial(self._add_partitions, topic), have, total)
                await self._reconcile([topic])

    async def arrange(self, topic: Topic, index: int, replicas: Sequence[int], changer: Changer | None = None) -> None:
        """Have the replicas of a partition stand in this order: the first one leads when leaders are elected.

        Raises `KorvetError` INVALID_REPLICA_ASSIGNMENT if they are others, UNKNOWN_TOPIC_OR_PARTITION if it is gone.
        """
        async with (changer or self._own).turn():
            await self._refresh()
            present = topic.replicas[index] if topic.replicas else ()
            if sorted(present) != sorted(replicas):
                raise KorvetError(
                    Errors.INVALID_REPLICA_ASSIGNMENT,
                    f"the copies of {topic.name}:{index} stay where they are: {present}",
                )
            arranged = [*topic.replicas[:index], list(replicas), *topic.replicas[index + 1 :]]
            await self._rewrite(topic, topic.describe()._replace(replicas=arranged))
            topic.replicas = arranged

    async def alter(
        self,
        topic: Topic,
        configs: Mapping[str, str | None] | Callable[[], Mapping[str, str | None]],
        changer: Changer | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Replace the topic's own settings by these; the fixed ones stay. Raises `KorvetError` INVALID_CONFIG.

        Settings made from the present ones must be given as a function: it is called when no other change is under way.
        """
        async with (changer or self._own).turn():
            await self._refresh()
            own = topic.config.keep(configs() if callable(configs) else configs)
            config = TopicConfig(self._settings, own, topic.config.fixed, syncs=self._given.store.syncs)
            if not validate_only:
                await self._rewrite(topic, topic.describe()._replace(configs=config.overrides))
                own_now = _show(config.overrides) or " are none now"
                self._given.log.tell("altered", f"topic {topic.name}: settings of its own{own_now}")
                topic.configure(config)

    async def delete(self, topic: Topic, changer: Changer | None = None) -> None:
        """Remove a topic and its records.

        Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION if it is gone already, or THROTTLING_QUOTA_EXCEEDED.
        """
        async with (changer or self._own).turn():
            await self._refresh()
            # The point of no return: if this broker crashes now, another one deletes the topic, or its next start.
            deleting = topic.describe()._replace(deleting=True, deleter=self._members.incarnation)
            await self._rewrite(topic, deleting, len(topic.partitions))
            partitions = _count(len(topic.partitions))
            self._given.log.tell("deleted", f"topic {topic.name}: deleted, {partitions} with all records")
            self._remove(topic)
            self._members.forget(topic.id)
            self._deletions.add(topic)
            await self._deletions.drop(topic)

    async def end_deletions(self) -> None:
        """Delete the rest of topics whose deletion failed, or whose broker is gone. Raises `StoreError`."""
        if self._deletions:
            async with self._own.turn():
                await self._deletions.end()

    def _check_total(self, total: int, more: int) -> None:
        if total < 1:
            raise KorvetError(Errors.INVALID_PARTITIONS, f"{total} partitions asked for; at least 1")
        limit = self._settings.number("max.partitions")
        if self.partition_count + more > limit:
            raise KorvetError(
                Errors.POLICY_VIOLATION, f"with {more} more this broker would pass max.partitions = {limit}"
            )

    async def _rewrite(self, topic: Topic, document: Document, mutated: int = 0) -> None:
        """`mutated`: so many partitions are created or deleted by it."""
        if self._by_name.get(topic.name) is not topic:
            raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} was deleted")
        if mutated:
            self.quota.check()
        version = topic.version + 1
        packed = document._replace(version=version).pack()
        if not await self._registry.save(topic.name, packed, topic.packed):
            raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name!r} was changed by another broker")
        self.quota.take(mutated)
        topic.packed, topic.version = packed, version
        self._given.metadata.advance()


async def _make_partitions(grow: Callable[[int], object], have: int, total: int) -> None:
    """Have `grow` make partitions until there are `total`; others have their turn between."""
    pace = BackgroundPace()
    for end in range(have + _STEP, total + _STEP, _STEP):
        grow(min(end, total))
        if pace.due():
            await pace.turn()


def _count(partitions: int) -> str:
    return f"{partitions:,} partition" + ("s" if partitions != 1 else "")


def _show(configs: Mapping[str, str]) -> str:
    """Settings for the log: `, retention.ms=5000`."""
    return "".join(f", {name}={value}" for name, value in sorted(configs.items()))
