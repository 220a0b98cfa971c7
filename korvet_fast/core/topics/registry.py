"""The topics' documents in the registry, which all brokers of a store have in common."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.topics.topic import Document, Topic
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

_PREFIX = "topics/"  # of a topic's key; its name follows


class TopicDocuments(NamedTuple):
    """All documents by the names of their topics, and what tells whether they have changed since."""

    generation: int  # of the store
    version: int  # how many changes of topics the registry has counted
    by_name: dict[str, bytes]


class TopicRegistry:
    """Loads, compares and sets documents, and knows which of their changes this broker has taken over."""

    def __init__(self, store: Store, generation: StoreGeneration) -> None:
        self._store = store
        self._generation = generation
        self._seen_generation = generation.number
        self._seen_version = -1

    async def load(self) -> dict[str, bytes]:
        """All documents, by the names of their topics; they count as taken over. Raises `StoreError`."""
        if self._store.shared is not None:
            self._seen_version = await self._store.shared.version(_PREFIX)
        return await self._scan()

    async def _scan(self) -> dict[str, bytes]:
        return {key.removeprefix(_PREFIX): packed for key, packed in (await self._store.scan(_PREFIX)).items()}

    async def find(self, name: str) -> bytes | None:
        """The document of the topic of this name, if there is one. Raises `StoreError`."""
        return await self._store.load(_PREFIX + name)

    async def save(self, name: str, packed: bytes | None, expected: bytes | None) -> bool:
        """Set a topic's document if the present one is `expected` (see `KeyStore.save`). Raises `StoreError`."""
        return await self._store.save(_PREFIX + name, packed, expected)

    async def read_changes(self, topics: Iterable[Topic]) -> TopicDocuments | None:
        """The documents as they are now; None: this broker has taken over all changes. Raises `StoreError`.

        `topics`: those that this broker knows; what the store has forgotten of them is written again before.
        """
        read = await self._read()
        while read is not None and read.generation != self._seen_generation:
            if await self._restore(topics, read.by_name):
                self._seen_generation = read.generation
            else:
                read = await self._read()
        return read

    def mark_seen(self, documents: TopicDocuments) -> None:
        """This broker's topics are now as in `documents`."""
        self._seen_version = documents.version

    async def _read(self) -> TopicDocuments | None:
        """A reading during which the history breaks may mix both, and is done again.

        In such a mixture, a topic that only the lost history had would look like one that another broker has deleted.
        """
        while True:
            generation, version = self._generation.number, self._seen_version
            if self._store.shared is not None:
                version = await self._store.shared.version(_PREFIX)
            if version == self._seen_version and generation == self._seen_generation:
                return None
            by_name = await self._scan()
            if generation == self._generation.number:
                return TopicDocuments(generation, version, by_name)

    async def _restore(self, topics: Iterable[Topic], by_name: dict[str, bytes]) -> bool:
        """The server's history broke: write again the documents that it has forgotten. Changes `by_name`.

        A topic whose deletion only the lost history knew comes back too: better a topic too many.
        False: another broker wrote one of them meanwhile, and `by_name` is out of date.
        """
        for topic in topics:
            packed = by_name.get(topic.name)
            known = Document.unpack(packed) if packed is not None else None
            if known is not None and (known.id != topic.id or known.version >= topic.version):
                continue
            if not await self.save(topic.name, topic.packed, packed):
                return False
            what = "it" if known is None else "its last changes"
            logger.warning(
                "topic %s: the store had forgotten %s, and this broker wrote its document again", topic.name, what
            )
            by_name[topic.name] = topic.packed
        return True
