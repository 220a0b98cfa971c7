"""The bindings in the registry, which all brokers of a store have in common: one key for each."""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import chain
from typing import Final

from korvet_fast.core.acls.authorizer import Authorizer
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.fair_queue import BackgroundPace, Pace
from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.registry_reader import RegistryReader
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.printable import printable
from korvet_fast.store.interface import Store
from korvet_fast.store.types import ABSENT, CompareAndSet

logger = logging.getLogger(__name__)

MOST: Final = 20_000  # bindings of a cluster
_PREFIX: Final = "acls/"  # registry key: this and a digest of the value, so a key never has another value
_AT_ONCE: Final = 500  # keys that are compared and set together, and bindings looked at between two looks at the clock
_TRIES: Final = 5  # other brokers may change the same bindings meanwhile


class AclRegistry:
    """Keeps the bindings of `authorizer` as those of the registry, and changes both.

    A store that fails leaves the bindings in force as they were read last, for `patience` calls of `expire` at most.
    From then on, and where a document is damaged, nobody but super users may do anything: it may have been a DENY.
    """

    def __init__(self, store: Store, generation: StoreGeneration, authorizer: Authorizer, patience: int) -> None:
        self._store = store
        self._reader = RegistryReader(store, generation, _PREFIX)
        self._authorizer = authorizer
        self._patience = patience
        self._checks = self._read_at = 0  # calls of `expire`, all and before the last reading that succeeded
        self._by_key: dict[str, AclBinding] = {}  # as in the authorizer's index
        self._damaged: dict[str, bytes] = {}  # documents that cannot be read
        self._changing = asyncio.Lock()

    async def refresh(self) -> None:
        """Take over what other brokers have changed. Raises `StoreError`."""
        async with self._changing:
            await self._refresh()

    async def expire(self) -> None:
        """Refuse everybody but super users if the store has not been read for too long; call it at equal intervals.

        Calls are counted and not time: after a stop of the whole process the store is read before it is missed.
        """
        self._checks += 1
        if self._authorizer.is_ready and self._checks - self._read_at > self._patience:
            self._close()
            logger.error("the store does not tell the ACLs, so nobody but super.users may do anything until it does")

    async def create(self, bindings: Sequence[AclBinding], by: str) -> None:
        """Add bindings that `check` takes. `by`: the principal that asks, for the log.

        Raises `KorvetError` POLICY_VIOLATION if there would be too many, or `StoreError`.
        """
        async with self._changing:
            for _ in range(_TRIES):
                await self._refresh()
                index = self._authorizer.index
                new = [binding for binding in dict.fromkeys(bindings) if binding not in index]
                if len(index) + len(new) > MOST:
                    raise KorvetError(
                        Errors.POLICY_VIOLATION, f"a cluster has {MOST:,} ACLs at most: use prefixes, or remove some"
                    )
                if await self._save(new, by, adds=True):
                    return
            raise _busy()

    async def delete(self, filters: Sequence[AclFilter], by: str, pace: Pace) -> list[list[AclBinding]]:
        """Remove the bindings that filters choose; returns them for each filter. Raises `StoreError`.

        A filter that chooses all removes damaged documents too.
        """
        async with self._changing:
            for _ in range(_TRIES):
                await self._refresh()
                found = [await self.find(one, pace) for one in filters]
                if not await self._save(list(dict.fromkeys(chain.from_iterable(found))), by, adds=False):
                    continue
                if AclFilter() in filters:
                    await self._remove_damaged(by)
                return found
            raise _busy()

    async def find(self, wanted: AclFilter, pace: Pace) -> list[AclBinding]:
        """The bindings that a filter chooses, sorted."""
        every, found = list(self._authorizer.index), []
        for start in range(0, len(every), _AT_ONCE):
            found += [binding for binding in every[start : start + _AT_ONCE] if wanted.matches(binding)]
            if pace.due():
                await pace.turn()
        return sorted(found)

    async def _refresh(self) -> None:
        while True:
            began = self._checks
            reading = await self._reader.read()
            if reading is None:
                self._read_at = began
                return
            values = reading.documents
            present = await self._read(values)
            broken = reading.generation != self._reader.history
            lost = {key: binding for key, binding in self._by_key.items() if broken and key not in values}
            if lost:
                if not await self._write(lost.values(), adds=True):
                    continue
                logger.warning("the store had forgotten %d ACLs, and this broker wrote them again", len(lost))
                present |= lost
            self._note_damage({key: packed for key, packed in values.items() if key not in present})
            self._apply(present)
            self._reader.mark_seen(reading)
            self._read_at = began
            if self._damaged:  # somebody may mend a document past the store's count of changes
                self._reader.forget()
            return

    async def _read(self, values: dict[str, bytes]) -> dict[str, AclBinding]:
        """The bindings by their keys, without those whose documents are damaged."""
        found, pace = {}, BackgroundPace()
        for key, packed in values.items():
            binding = self._by_key.get(key) or _unpack(key, packed)
            if binding is not None:
                found[key] = binding
            if pace.due():
                await pace.turn()
        return found

    def _note_damage(self, damaged: dict[str, bytes]) -> None:
        if damaged and damaged != self._damaged:
            logger.error(
                "the registry has damaged ACLs (%d, such as %s), so nobody but super.users may do anything. A super "
                "user mends that: keep what `korvet-fast acl list` shows, remove all with `korvet-fast acl remove "
                "--all`, and add the same again, and those that the list did not show",
                len(damaged),
                printable(min(damaged)),
            )
        elif self._damaged and not damaged:
            logger.warning("no ACL in the registry is damaged any more, so they hold again")
        self._damaged = damaged

    async def _remove_damaged(self, by: str) -> None:
        damaged = [CompareAndSet(key, ABSENT, packed) for key, packed in self._damaged.items()]
        for start in range(0, len(damaged), _AT_ONCE):
            first, *others = damaged[start : start + _AT_ONCE]
            if not await self._store.save(first.key, first.value, first.expected, *others):
                raise _busy()
        if damaged:
            logger.info("%d damaged ACLs removed, as %s asked", len(damaged), printable(by))
            self._note_damage({})
            self._apply(self._by_key)

    def _close(self) -> None:
        self._authorizer.note_change(ready=False)
        self._reader.forget()

    def _apply(self, present: dict[str, AclBinding]) -> None:
        index = self._authorizer.index
        if present.keys() != self._by_key.keys() or self._authorizer.is_ready is bool(self._damaged):
            for key in self._by_key.keys() - present.keys():
                index.remove(self._by_key[key])
            for key in present.keys() - self._by_key.keys():
                index.add(present[key])
            self._by_key = present
            self._authorizer.note_change(ready=not self._damaged)

    async def _save(self, bindings: Sequence[AclBinding], by: str, *, adds: bool) -> bool:
        """Add or remove bindings, here too; False if another broker was faster, and what is here is out of date."""
        for start in range(0, len(bindings), _AT_ONCE):
            part = bindings[start : start + _AT_ONCE]
            if not await self._write(part, adds=adds):
                self._reader.forget()
                return False
            present = dict(self._by_key)
            for binding in part:
                if adds:
                    present[_key(binding)] = binding
                else:
                    present.pop(_key(binding), None)
                what = "added" if adds else "removed"
                logger.info("ACL %s: %s, as %s asked", what, printable(str(binding)), printable(by))
            self._apply(present)
        return True

    async def _write(self, bindings: Iterable[AclBinding], *, adds: bool) -> bool:
        changes = []
        for binding in bindings:
            packed = _pack(binding)
            old, new = (ABSENT, packed) if adds else (packed, ABSENT)
            changes.append(CompareAndSet(_key(binding), new, old))
        if not changes:
            return True
        first, *others = changes
        return await self._store.save(first.key, first.value, first.expected, *others)


def _pack(binding: AclBinding) -> bytes:
    return json.dumps(list(binding)).encode()


def _key(binding: AclBinding) -> str:
    return _PREFIX + sha256(_pack(binding)).hexdigest()


def _unpack(key: str, packed: bytes) -> AclBinding | None:
    """None if it is damaged."""
    try:
        resource, name, pattern, principal, host, operation, permission = json.loads(packed)
        binding = AclBinding(
            ResourceType(resource),
            name,
            PatternType(pattern),
            principal,
            host,
            Operation(operation),
            Permission(permission),
        )
        binding.check()
    except (ValueError, TypeError, KorvetError):
        return None
    return binding if _key(binding) == key else None


def _busy() -> StoreError:
    return StoreError("other brokers change ACLs all the time; try again")
