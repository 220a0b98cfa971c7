"""The topics' documents in the registry, which all brokers of a store have in common."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.registry_reader import Reading, RegistryReader
from korvet_fast.core.topics.topic import Document, Topic
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

_PREFIX = "topics/"  # of a topic's key; its name follows


class TopicDocuments(NamedTuple):
    """All documents by the names of their topics, and the reading that they are of."""

    reading: Reading
    by_name: dict[str, bytes]


class TopicRegistry:
    """Loads, compares and sets documents, and knows which of their changes this broker has taken over."""

    def __init__(self, store: Store, generation: StoreGeneration) -> None:
        self._store = store
        self._reader = RegistryReader(store, generation, _PREFIX)

    async def load(self) -> dict[str, bytes]:
        """All documents, by the names of their topics; they count as taken over. Raises `StoreError`."""
        self._reader.forget()
        read = await self._read()
        assert read is not None, "nothing counts as taken over"
        self.mark_seen(read)
        return read.by_name

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
        while read is not None and read.reading.generation != self._reader.history:
            if await self._restore(topics, read.by_name):
                self._reader.history = read.reading.generation
            else:
                read = await self._read()
        return read

    def mark_seen(self, documents: TopicDocuments) -> None:
        """This broker's topics are now as in `documents`."""
        self._reader.mark_seen(documents.reading)

    async def _read(self) -> TopicDocuments | None:
        reading = await self._reader.read()
        if reading is None:
            return None
        by_name = {key.removeprefix(_PREFIX): packed for key, packed in reading.documents.items()}
        return TopicDocuments(reading, by_name)

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
