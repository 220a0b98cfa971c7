"""The cluster's id, and the leader epoch of a broker that has its store for itself: it counts starts after a crash.

Where several brokers shared the store before, that epoch goes on above all that they led under.
"""

import json
import secrets
from collections.abc import Iterable

from korvet_fast.core.cluster.leader_directory import PREFIX
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import Store

KEY = "broker"  # registry key
_SKIPPED = 1000  # epochs left out where a store was shared: its brokers may not have told the last ones


def read_cluster_id(document: bytes | None) -> str:
    """The cluster id in the registry's document; "" if there is none: no broker has used the store yet."""
    return "" if document is None else str(json.loads(document)["cluster_id"])


def _find_highest(documents: Iterable[bytes]) -> int:
    """The highest leader epoch that brokers told each other (see `leader_directory`)."""
    tables = (json.loads(document).values() for document in documents)
    return max((epoch for table in tables for epochs in table for epoch in epochs.values()), default=0)


class ClusterIdentity:
    """`cluster_id`, and `epoch`: the leader epoch of everything in a store that is not shared; 0 in one that is."""

    def __init__(self, store: Store) -> None:
        self.cluster_id = ""
        self.epoch = 0
        self._store = store
        self._document: bytes | None = None

    async def begin(self) -> None:
        """Learn both from the registry, or make them up. Raises `StoreError`."""
        self._document = await self._store.load(KEY)
        if self._document is None:
            self.cluster_id = secrets.token_urlsafe(16)
        else:
            values = json.loads(self._document)
            self.cluster_id = values["cluster_id"]
            # Records that were written but not durable may be gone: offsets may be given out again, under a new epoch.
            self.epoch = values.get("epoch", 0) + (0 if values.get("clean", True) else 1)
            if self._store.shared is not None and "epoch" in values:
                self.epoch = values["epoch"] + 1  # it was not shared before: all leaders are others now
        if self._store.shared is None:
            told = await self._store.scan(PREFIX)
            self.epoch = max(self.epoch, _find_highest(told.values()) + _SKIPPED if told else 0)
            await self._note(clean=False)
            for key, document in told.items():
                await self._store.save(key, None, document)
        elif self._document is None and not await self._save({"cluster_id": self.cluster_id}):
            await self.begin()  # another broker was first

    async def restore(self) -> None:
        """Write the cluster's id again to a shared store that came back without it. Raises `StoreError`."""
        if self._store.shared is not None and await self._store.load(KEY) is None:
            self._document = None
            await self._save({"cluster_id": self.cluster_id})

    async def end(self) -> None:
        """The stop is a clean one. Raises `StoreError`."""
        if self._store.shared is None:
            await self._note(clean=True)

    async def _note(self, *, clean: bool) -> None:
        if not await self._save({"cluster_id": self.cluster_id, "epoch": self.epoch, "clean": clean}):
            raise StoreError("another broker uses this store")

    async def _save(self, values: dict[str, object]) -> bool:
        document = json.dumps(values).encode()
        if not await self._store.save(KEY, document, self._document):
            return False
        self._document = document
        return True
