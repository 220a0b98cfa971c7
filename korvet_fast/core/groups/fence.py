"""Who coordinates a slot of groups, as the store says it. Every write to a group of the slot is compared with it.

groups-17/owner    the broker, a mark of its process (none: it was released), and an epoch that rises with every taking

A broker that stood still while another took over writes nothing any more, whatever it believes. What it answers from
memory ends before: whoever lives releases a slot first, and only then another one takes it; whoever is taken for dead
knows it in time (`cluster.holds`).
"""

import json
from collections.abc import Callable, Sequence

from korvet_fast.core.groups.documents import slot_prefix
from korvet_fast.store.interface import Change, Store


def owner_key(slot: int) -> str:
    """Where it says who coordinates a slot."""
    return f"{slot_prefix(slot)}owner"


class Fence:
    """Of one slot. `take` it, then write with `comparison`. A store that is not shared needs none."""

    __slots__ = ("_document", "_epoch", "_key", "_store", "_token")

    def __init__(self, store: Store, slot: int, token: str) -> None:
        """`token`: of this process, unlike that of any other."""
        self._store = store
        self._key = owner_key(slot)
        self._token = token
        self._document: bytes | None = None  # as this broker wrote it
        self._epoch = 0

    @property
    def comparison(self) -> Sequence[Change]:
        """What a write has to be saved with."""
        return [Change(self._key, self._document, self._document)] if self._store.shared else []

    async def take(self, broker: int, lives: Callable[[str], bool]) -> bool:
        """Whoever had the slot before writes nothing from now on. False if another process that `lives` has it.

        Raises `StoreError`.
        """
        while self._store.shared:
            present = await self._store.load(self._key)
            holder = _process_of(present)
            if holder not in ("", self._token) and lives(holder):
                return False
            # The store may have lost the last takings: no epoch is given twice.
            epoch = 1 + max(self._epoch, _epoch_of(present))
            document = _write(broker, self._token, epoch)
            if await self._store.save(self._key, document, present):
                self._document, self._epoch = document, epoch
                break
        return True

    async def release(self) -> None:
        """Nothing is answered here any more: another broker may take the slot. Raises `StoreError`."""
        while self._store.shared:
            present = await self._store.load(self._key)
            released = _write(-1, "", _epoch_of(present))
            if _process_of(present) != self._token or await self._store.save(self._key, released, present):
                return

    async def keep(self, broker: int) -> bool:
        """Whether nobody else has taken the slot since; it is taken again if the store has forgotten about it.

        Raises `StoreError`.
        """
        if not self._store.shared:
            return True
        present = await self._store.load(self._key)
        if present != self._document:
            if _epoch_of(present) >= self._epoch:
                return False
            return await self.take(broker, lambda _: False)
        return True


def _write(broker: int, process: str, epoch: int) -> bytes:
    return json.dumps({"broker": broker, "process": process, "epoch": epoch}).encode()


def _process_of(document: bytes | None) -> str:
    return str(json.loads(document)["process"]) if document is not None else ""


def _epoch_of(document: bytes | None) -> int:
    return int(json.loads(document)["epoch"]) if document is not None else 0
