"""Documents of the registry that all brokers of a store have in common, read again when they have changed."""

from typing import NamedTuple

from korvet_fast.core.generation import StoreGeneration
from korvet_fast.store.interface import Store


class Reading(NamedTuple):
    """All documents by their keys, and what tells whether they have changed since."""

    generation: int  # of the store
    version: int  # how many changes the registry has counted under the prefix
    documents: dict[str, bytes]


class RegistryReader:
    """Reads the documents under a prefix, and knows which of their changes its owner has taken over.

    `history`: the store's generation that the owner's documents are of. Where a reading is of another, the store may
    have forgotten some of them, and the owner writes those again.
    """

    def __init__(self, store: Store, generation: StoreGeneration, prefix: str) -> None:
        self._store = store
        self._generation = generation
        self._prefix = prefix
        self._seen: tuple[int, int] | None = None  # generation and version of the last reading that was taken over
        self.history = generation.number

    async def read(self) -> Reading | None:
        """The documents as they are now; None: all changes are taken over. Raises `StoreError`.

        A reading during which the history breaks may mix both, and is done again: in such a mixture, a document that
        only the lost history had would look like one that another broker has deleted.
        """
        while True:
            generation, shared = self._generation.number, self._store.shared
            version = await shared.version(self._prefix) if shared is not None else 0
            if (generation, version) == self._seen:
                return None
            documents = await self._store.scan(self._prefix)
            if generation == self._generation.number:
                return Reading(generation, version, documents)

    def mark_seen(self, reading: Reading) -> None:
        """The owner's documents are now those of the reading."""
        self.history = reading.generation
        self._seen = reading.generation, reading.version

    def forget(self) -> None:
        """Read again next time, even if nothing has changed."""
        self._seen = None
