"""The document that says which broker coordinates a coordinator partition. Each write to a group is compared with it.

groups-17/owner    the broker, the token of its process (none: it was released), and an epoch that rises with every
                   acquisition

If another broker acquires the partition while this one stands still, the store refuses the writes of this one. This one
does not answer from memory either: a broker that lives releases a partition before another broker acquires it, and the
`Lease` of a broker ends before the others take the broker for dead.
"""

import json
from collections.abc import Callable, Sequence

from korvet_fast.core.groups.documents import partition_prefix
from korvet_fast.store.interface import Store
from korvet_fast.store.types import CompareAndSet


def owner_key(partition: int) -> str:
    """The key of the document that says which broker coordinates a partition."""
    return f"{partition_prefix(partition)}owner"


class PartitionOwnership:
    """The owner of one coordinator partition: `acquire`, then write with `comparison`. Only a shared store needs it."""

    __slots__ = ("_document", "_epoch", "_key", "_store", "_token")

    def __init__(self, store: Store, partition: int, token: str) -> None:
        """`token`: names this process, and no other."""
        self._store = store
        self._key = owner_key(partition)
        self._token = token
        self._document: bytes | None = None  # as this broker wrote it
        self._epoch = 0

    @property
    def comparison(self) -> Sequence[CompareAndSet]:
        """The value that each write is compared with: the document as this broker wrote it."""
        return [CompareAndSet(self._key, self._document, self._document)] if self._store.shared is not None else []

    async def acquire(self, broker: int, lives: Callable[[str], bool]) -> bool:
        """Become the owner: the store refuses the former owner's writes from now on. False: the owner `lives`.

        Raises `StoreError`.
        """
        while self._store.shared is not None:
            present = await self._store.load(self._key)
            holder = _process_of(present)
            if holder not in ("", self._token) and lives(holder):
                return False
            # The store may have lost the last acquisitions: no epoch is used twice.
            epoch = 1 + max(self._epoch, _epoch_of(present))
            document = _write(broker, self._token, epoch)
            if await self._store.save(self._key, document, present):
                self._document, self._epoch = document, epoch
                break
        return True

    async def release(self) -> None:
        """Let another broker acquire the partition; this one does not answer any more. Raises `StoreError`."""
        while self._store.shared is not None:
            present = await self._store.load(self._key)
            released = _write(-1, "", _epoch_of(present))
            if _process_of(present) != self._token or await self._store.save(self._key, released, present):
                return

    async def verify(self, broker: int) -> bool:
        """Whether this broker still owns the partition. Acquires it again if the store has lost the acquisition.

        Raises `StoreError`.
        """
        if self._store.shared is None:
            return True
        present = await self._store.load(self._key)
        if present != self._document:
            if _epoch_of(present) >= self._epoch:
                return False
            return await self.acquire(broker, lambda _: False)
        return True


def _write(broker: int, process: str, epoch: int) -> bytes:
    return json.dumps({"broker": broker, "process": process, "epoch": epoch}).encode()


def _process_of(document: bytes | None) -> str:
    return str(json.loads(document)["process"]) if document is not None else ""


def _epoch_of(document: bytes | None) -> int:
    return int(json.loads(document)["epoch"]) if document is not None else 0
