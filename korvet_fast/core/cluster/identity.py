"""The cluster's id, and the number of starts after a crash of a broker that has its store for itself."""

import json
import secrets

from korvet_fast.errors import StoreError
from korvet_fast.store.interface import Store

KEY = "broker"  # registry key


def read_cluster_id(document: bytes | None) -> str:
    """The cluster id in the registry's document; "" if there is none: no broker has used the store yet."""
    return "" if document is None else str(json.loads(document)["cluster_id"])


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
        if self._store.shared is None:
            await self._note(clean=False)
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
