"""The topics: found by name or id, created, grown, altered, deleted; each kept as one JSON document in the registry."""

import asyncio
import json
import re
import secrets
from bisect import insort
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from korvet_fast.config import Settings
from korvet_fast.core.host import Host
from korvet_fast.core.partition import Partition
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import ABSENT

_PREFIX = "topics/"
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # Kafka's rule (Topic.java), "." and ".." excepted
_AT_ONCE = 64  # partitions opened or dropped side by side


class Topic:
    """A topic and its partitions. `id`: 16 random bytes, never used again."""

    __slots__ = ("config", "document", "id", "name", "partitions")

    def __init__(self, host: Host, name: str, document: bytes, settings: Settings) -> None:
        values: dict[str, Any] = json.loads(document)
        self.name = name
        self.document = document  # as it is in the registry
        self.id = bytes.fromhex(values["id"])
        self.config = TopicConfig(settings, values["configs"])
        self.partitions = [Partition(host, name, index, self.config) for index in range(values["partitions"])]


def _write(identity: bytes, partitions: int, configs: Mapping[str, str], deleting: bool = False) -> bytes:
    values = {"id": identity.hex(), "partitions": partitions, "configs": dict(configs), "deleting": deleting}
    return json.dumps(values, sort_keys=True).encode()


def check_name(name: str) -> None:
    """Raises `KorvetError` INVALID_TOPIC_EXCEPTION for a name that Kafka does not allow."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        legal = "1 to 249 of letters, digits, '.', '_' and '-', and not '.' or '..'"
        raise KorvetError("INVALID_TOPIC_EXCEPTION", f"a topic's name is {legal}")


class Topics:
    """All topics of the broker. `version` grows with every change, so that answers made from them can be kept."""

    def __init__(self, host: Host, settings: Settings) -> None:
        self.version = 0
        self._host = host
        self._settings = settings
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._spellings: dict[str, str] = {}  # '.' written as '_' -> name: the two may not be told apart in metrics
        self._sorted: list[Topic] = []
        self._count = 0  # partitions in all
        self._changing = asyncio.Lock()  # one change at a time; reading never waits

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
        """See `check_name` of this module."""
        check_name(name)

    async def open(self) -> None:
        """Load what the registry knows, and end deletions that a crash cut short. Raises `StoreError`."""
        states = await self._host.store.scan("state/")
        for key, document in (await self._host.store.scan(_PREFIX)).items():
            topic = self._read(key.removeprefix(_PREFIX), document)
            # One by one, as it mostly needs no wait; a broker may have ten thousand partitions.
            behind = [one for one in topic.partitions if await one.open(states.get(f"state/{one.log}"))]
            await _each(behind, Partition.catch_up)
            if json.loads(document)["deleting"]:
                await self._drop(topic)
            else:
                self._enter(topic)

    def _read(self, name: str, document: bytes) -> Topic:
        try:
            return Topic(self._host, name, document, self._settings)
        except KorvetError as error:
            raise StoreError(f"topic {name!r} was made by a broker of other settings: {error.detail}") from error

    async def save(self) -> None:
        """Save the state of all partitions that changed since they were saved."""
        async with self._changing:  # a partition that is being dropped must not be saved again
            changed = [partition for topic in self for partition in topic.partitions if not partition.is_saved]
            await _each(changed, Partition.save)

    async def create(
        self, name: str, partitions: int, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> Topic:
        """A new topic; -1 partitions: `num.partitions`. With `validate_only` nothing is kept.

        Raises `KorvetError` INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, POLICY_VIOLATION (more
        than `max.partitions`), INVALID_CONFIG; or `StoreError`.
        """
        async with self._changing:
            return await self._create(name, partitions, configs, validate_only)

    async def auto_create(self, name: str) -> Topic:
        """The topic of this name, created with the broker's defaults if there is none. Errors as `create`."""
        async with self._changing:
            return self._by_name.get(name) or await self._create(name, -1, {}, False)

    async def _create(self, name: str, partitions: int, configs: Mapping[str, str | None], validate: bool) -> Topic:
        check_name(name)
        if name in self._by_name:
            raise KorvetError("TOPIC_ALREADY_EXISTS", f"topic {name!r} exists")
        near = self._spellings.get(name.replace(".", "_"))
        if near is not None:
            raise KorvetError("INVALID_TOPIC_EXCEPTION", f"{name!r} differs from topic {near!r} only in '.' and '_'")
        total = self._settings.number("num.partitions") if partitions == -1 else partitions
        self._check_total(total, total)
        overrides = TopicConfig(self._settings, configs).overrides
        document = _write(secrets.token_bytes(16), total, overrides)
        topic = Topic(self._host, name, document, self._settings)
        if not validate:
            if not await self._host.store.save(_PREFIX + name, document, ABSENT):
                raise KorvetError("TOPIC_ALREADY_EXISTS", f"topic {name!r} exists, or is being deleted")
            self._enter(topic)
        return topic

    async def grow(self, topic: Topic, total: int, *, validate_only: bool = False) -> None:
        """More partitions, `total` in the end. Raises `KorvetError` INVALID_PARTITIONS, POLICY_VIOLATION."""
        async with self._changing:
            have = len(topic.partitions)
            if total <= have:
                raise KorvetError(
                    "INVALID_PARTITIONS", f"topic {topic.name!r} has {have} partitions, {total} asked for"
                )
            self._check_total(total, total - have)
            if not validate_only:
                await self._rewrite(topic, _write(topic.id, total, topic.config.overrides))
                topic.partitions += [
                    Partition(self._host, topic.name, index, topic.config) for index in range(have, total)
                ]
                self._count += total - have

    async def alter(
        self,
        topic: Topic,
        configs: Mapping[str, str | None] | Callable[[], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Replace the topic's own settings by these. Raises `KorvetError` INVALID_CONFIG.

        Settings made from the present ones must be given as a function: it is called when no other change is under way.
        """
        async with self._changing:
            config = TopicConfig(self._settings, configs() if callable(configs) else configs)
            if not validate_only:
                await self._rewrite(topic, _write(topic.id, len(topic.partitions), config.overrides))
                topic.config = config
                for partition in topic.partitions:
                    partition.config = config

    async def delete(self, topic: Topic) -> None:
        """Remove a topic and its records. Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION if it is gone already."""
        async with self._changing:
            # The point of no return: from here on it is deleted, on a crash by the next start.
            overrides = topic.config.overrides
            await self._rewrite(topic, _write(topic.id, len(topic.partitions), overrides, deleting=True))
            self._leave(topic)
            await self._drop(topic)

    def _check_total(self, total: int, more: int) -> None:
        if total < 1:
            raise KorvetError("INVALID_PARTITIONS", f"{total} partitions asked for; at least 1")
        limit = self._settings.number("max.partitions")
        if self._count + more > limit:
            raise KorvetError("POLICY_VIOLATION", f"with {more} more this broker would pass max.partitions = {limit}")

    async def _rewrite(self, topic: Topic, document: bytes) -> None:
        if self._by_name.get(topic.name) is not topic:
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.name!r} was deleted")
        if not await self._host.store.save(_PREFIX + topic.name, document, topic.document):
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.name!r} was changed by another broker")
        topic.document = document
        self.version += 1

    async def _drop(self, topic: Topic) -> None:
        await _each(topic.partitions, Partition.drop)
        await self._host.store.save(_PREFIX + topic.name, None, topic.document)

    def _enter(self, topic: Topic) -> None:
        self._by_name[topic.name] = self._by_id[topic.id] = topic
        self._spellings[topic.name.replace(".", "_")] = topic.name
        insort(self._sorted, topic, key=lambda other: other.name)
        self._count += len(topic.partitions)
        self.version += 1

    def _leave(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.id], self._spellings[topic.name.replace(".", "_")]
        self._sorted.remove(topic)
        self._count -= len(topic.partitions)
        self.version += 1


async def _each(partitions: Sequence[Partition], work: Callable[[Partition], Awaitable[None]]) -> None:
    for first in range(0, len(partitions), _AT_ONCE):
        await asyncio.gather(*map(work, partitions[first : first + _AT_ONCE]))
