"""The topics: found by name or id, created, grown, altered, deleted; each kept as one document in the registry.

Where the store is shared, other brokers change them as well: `refresh` follows the registry.
"""

import asyncio
import logging
import secrets
from bisect import insort
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from korvet_fast.config import Settings
from korvet_fast.core.eager import each
from korvet_fast.core.host import Host
from korvet_fast.core.partition import Partition
from korvet_fast.core.topic import Document, Topic, check_name
from korvet_fast.core.topic_config import TopicConfig, fix, warn
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import ABSENT

logger = logging.getLogger(__name__)

_PREFIX = "topics/"


class Topics:
    """All topics of the cluster, with those of their partitions that are led here ready to be used.

    `settle` takes over those partitions of topics that are to be led here, and gives up the others.
    """

    def __init__(self, host: Host, settings: Settings, settle: Callable[[Iterable[Topic]], Awaitable[None]]) -> None:
        self._host = host
        self._settle = settle
        self._settings = settings
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._spellings: dict[str, str] = {}  # '.' written as '_' -> name: the two may not be told apart in metrics
        self._sorted: list[Topic] = []
        self._count = 0  # partitions in all
        self._changing = asyncio.Lock()  # one change at a time; reading never waits
        self._seen = -1  # the registry's count of changes, as of the last `refresh`
        self._forks = host.forks  # as of the last `refresh`

    @property
    def version(self) -> int:
        """Grows with every change, so that answers made from the topics can be kept."""
        return self._host.version

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._sorted)

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, identity: bytes) -> Topic | None:
        return self._by_id.get(identity)

    @staticmethod
    def check_name(name: str) -> None:
        """See `topic.check_name`."""
        check_name(name)

    # -- the registry --------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load what the registry knows, and end deletions that a crash cut short. Raises `StoreError`.

        What a store that is not shared holds is all taken over.
        """
        host = self._host
        async with self._changing:  # the cluster is looked at already, and what is seen there may `refresh`
            self._seen = await host.store.changed(_PREFIX)
            for key, packed in (await host.store.scan(_PREFIX)).items():
                topic = self._read(key.removeprefix(_PREFIX), packed)
                if Document.unpack(packed).deleting:
                    await self._drop(topic)
                else:
                    self._enter(topic)
        if not host.store.shared:
            states = await host.store.scan("state/")
            await each(self._all(), lambda partition: partition.open(states.get(f"state/{partition.log}")))

    def _read(self, name: str, packed: bytes) -> Topic:
        try:
            return Topic(self._host, name, packed, self._settings)
        except KorvetError as error:
            raise StoreError(f"topic {name!r} was made by a broker of other settings: {error.detail}") from error

    def _all(self) -> Iterator[Partition]:
        return (partition for topic in self for partition in topic.partitions)

    async def save(self) -> None:
        """Save the state of all partitions that changed since they were saved."""
        async with self._changing:  # a partition that is being dropped must not be saved again
            await each([one for one in self._all() if one.led and not one.is_saved], Partition.save)

    async def refresh(self) -> None:
        """Take over what other brokers changed in the registry since the last time. Raises `StoreError`."""
        async with self._changing:
            await self._refresh()

    async def _refresh(self) -> None:
        store = self._host.store
        forks = self._host.forks
        seen = await store.changed(_PREFIX) if store.shared else self._seen
        if seen == self._seen and forks == self._forks:
            return
        documents = {key.removeprefix(_PREFIX): packed for key, packed in (await store.scan(_PREFIX)).items()}
        if forks != self._forks:
            await self._restore(documents)
            self._forks = forks
        changed: list[Topic] = []
        for topic in list(self):
            if documents.get(topic.name) != topic.packed:
                self._follow(topic, documents.get(topic.name))
                changed.append(topic)
        for name, packed in documents.items():
            if name not in self._by_name and not Document.unpack(packed).deleting:
                topic = self._read(name, packed)
                self._enter(topic)
                changed.append(topic)
        self._seen = seen
        await self._settle([topic for topic in changed if self._by_id.get(topic.id) is topic])

    async def _restore(self, documents: dict[str, bytes]) -> None:
        """The server's history broke: tell it again what it has forgotten of the topics. Changes `documents`.

        What it never had comes back too: a deletion that only the lost history knew. Better a topic too many.
        """
        for topic in self:
            packed = documents.get(topic.name)
            known = Document.unpack(packed) if packed is not None else None
            if known is not None and (known.id != topic.id or known.version >= topic.version):
                continue
            if await self._host.store.save(_PREFIX + topic.name, topic.packed, packed):
                what = "it" if known is None else "its last changes"
                logger.warning("topic %s: the store had forgotten %s, and was told again", topic.name, what)
                documents[topic.name] = topic.packed

    def _follow(self, topic: Topic, packed: bytes | None) -> None:
        """Another broker changed the topic's document, or took it out."""
        document = Document.unpack(packed) if packed is not None else None
        if packed is None or document is None or document.deleting or document.id != topic.id:
            self._leave(topic)
            for partition in topic.partitions:
                partition.leave()
            return
        topic.packed, topic.version = packed, document.version
        topic.configure(TopicConfig(self._settings, document.configs, topic.config.fixed, syncs=self._host.store.syncs))
        self._grow(topic, document.partitions)
        self._host.version += 1

    async def find(self, name: str) -> Topic | None:
        """The topic of this name, even if another broker has just made it. Raises `StoreError`."""
        if name not in self._by_name:
            await self.refresh()
        return self._by_name.get(name)

    # -- changes -------------------------------------------------------------------------------------------------

    async def create(
        self, name: str, partitions: int, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> Topic:
        """A new topic; -1 partitions: `num.partitions`. With `validate_only` nothing is kept.

        Raises `KorvetError` INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, POLICY_VIOLATION (more
        than `max.partitions`), INVALID_CONFIG; or `StoreError`.
        """
        async with self._changing:
            await self._refresh()
            return await self._create(name, partitions, configs, validate_only)

    async def auto_create(self, name: str) -> Topic:
        """The topic of this name, created with the broker's defaults if there is none. Errors as `create`."""
        async with self._changing:
            await self._refresh()
            if name in self._by_name:
                return self._by_name[name]
            try:
                return await self._create(name, -1, {}, False)
            except KorvetError:
                await self._refresh()  # another broker may have been faster
                if name not in self._by_name:
                    raise
                return self._by_name[name]

    async def _create(self, name: str, partitions: int, configs: Mapping[str, str | None], validate: bool) -> Topic:
        check_name(name)
        if name in self._by_name:
            raise KorvetError("TOPIC_ALREADY_EXISTS", f"topic {name!r} already exists")
        near = self._spellings.get(name.replace(".", "_"))
        if near is not None:
            raise KorvetError("INVALID_TOPIC_EXCEPTION", f"{name!r} differs from topic {near!r} only in '.' and '_'")
        total = self._settings.number("num.partitions") if partitions == -1 else partitions
        self._check_total(total, total)
        fixed, own = fix(self._settings, configs, self._host.store)
        overrides = TopicConfig(self._settings, own, fixed).overrides
        packed = Document(secrets.token_bytes(16), total, overrides, fixed).pack()
        topic = Topic(self._host, name, packed, self._settings)
        if not validate:
            if not await self._host.store.save(_PREFIX + name, packed, ABSENT):
                raise KorvetError("TOPIC_ALREADY_EXISTS", f"topic {name!r} already exists, or is being deleted")
            warn(name, fixed)
            self._enter(topic)
            await self._settle([topic])
        return topic

    async def grow(self, topic: Topic, total: int, *, validate_only: bool = False) -> None:
        """More partitions, `total` in the end. Raises `KorvetError` INVALID_PARTITIONS, POLICY_VIOLATION."""
        async with self._changing:
            await self._refresh()
            have = len(topic.partitions)
            if total <= have:
                raise KorvetError(
                    "INVALID_PARTITIONS", f"topic {topic.name!r} has {have} partitions, {total} asked for"
                )
            self._check_total(total, total - have)
            if not validate_only:
                await self._rewrite(topic, topic.describe()._replace(partitions=total))
                self._grow(topic, total)
                await self._settle([topic])

    async def alter(
        self,
        topic: Topic,
        configs: Mapping[str, str | None] | Callable[[], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Replace the topic's own settings by these; what is fixed stays. Raises `KorvetError` INVALID_CONFIG.

        Settings made from the present ones must be given as a function: it is called when no other change is under way.
        """
        async with self._changing:
            await self._refresh()
            own = topic.config.keep(configs() if callable(configs) else configs)
            config = TopicConfig(self._settings, own, topic.config.fixed, syncs=self._host.store.syncs)
            if not validate_only:
                await self._rewrite(topic, topic.describe()._replace(configs=config.overrides))
                topic.configure(config)

    async def delete(self, topic: Topic) -> None:
        """Remove a topic and its records. Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION if it is gone already."""
        async with self._changing:
            await self._refresh()
            # The point of no return: from here on it is deleted, on a crash by the next start.
            await self._rewrite(topic, topic.describe()._replace(deleting=True))
            self._leave(topic)
            await self._drop(topic)

    def _check_total(self, total: int, more: int) -> None:
        if total < 1:
            raise KorvetError("INVALID_PARTITIONS", f"{total} partitions asked for; at least 1")
        limit = self._settings.number("max.partitions")
        if self._count + more > limit:
            raise KorvetError("POLICY_VIOLATION", f"with {more} more this broker would pass max.partitions = {limit}")

    async def _rewrite(self, topic: Topic, document: Document) -> None:
        if self._by_name.get(topic.name) is not topic:
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.name!r} was deleted")
        version = topic.version + 1
        packed = document._replace(version=version).pack()
        if not await self._host.store.save(_PREFIX + topic.name, packed, topic.packed):
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.name!r} was changed by another broker")
        topic.packed, topic.version = packed, version
        self._host.version += 1

    async def _drop(self, topic: Topic) -> None:
        await each(topic.partitions, Partition.drop)
        await self._host.store.save(_PREFIX + topic.name, None, topic.packed)

    def _grow(self, topic: Topic, total: int) -> None:
        self._count += len(topic.grow(self._host, total))

    def _enter(self, topic: Topic) -> None:
        self._by_name[topic.name] = self._by_id[topic.id] = topic
        self._spellings[topic.name.replace(".", "_")] = topic.name
        insort(self._sorted, topic, key=lambda other: other.name)
        self._count += len(topic.partitions)
        self._host.version += 1

    def _leave(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.id], self._spellings[topic.name.replace(".", "_")]
        self._sorted.remove(topic)
        self._count -= len(topic.partitions)
        self._host.version += 1
