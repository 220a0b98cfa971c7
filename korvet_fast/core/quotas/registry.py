"""The quotas in the registry, which all brokers of a store have in common: one document for each entity."""

import asyncio
import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.quotas.client_quotas import ClientQuotas
from korvet_fast.core.quotas.entity import LONGEST_NAME, QuotaEntity, QuotaKey, Quotas, check_quota
from korvet_fast.core.registry_reader import RegistryReader
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.printable import printable
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

MOST: Final = 10_000  # entities of a cluster
_PREFIX: Final = "quotas/"  # registry key: this and a digest of the entity, whose names are free text
_TRIES: Final = 5  # other brokers may change the same entity meanwhile


class _Document(NamedTuple):
    packed: bytes
    entity: QuotaEntity
    quotas: Quotas


class QuotaRegistry:
    """Keeps `quotas` as those of the registry, and changes both.

    A store that fails leaves the quotas in force as they were read last.
    """

    def __init__(self, store: Store, generation: StoreGeneration, quotas: ClientQuotas) -> None:
        self._store = store
        self._reader = RegistryReader(store, generation, _PREFIX)
        self.quotas = quotas
        self._by_key: dict[str, _Document] = {}
        self._changing = asyncio.Lock()

    async def refresh(self) -> None:
        """Take over what other brokers have changed. Raises `StoreError`."""
        async with self._changing:
            await self._refresh()

    async def alter(self, entity: QuotaEntity, changes: Mapping[str, float | None], by: str, *, validate: bool) -> None:
        """Set quotas of an entity by their names, or remove them (None). `validate`: only say whether that is legal.

        `by`: the principal that asks, for the log. Raises `KorvetError` INVALID_REQUEST, POLICY_VIOLATION if there
        would be too many entities, or `StoreError`.
        """
        wanted = {check_quota(name, 1.0 if value is None else value): value for name, value in changes.items()}
        if any(name is not None and len(name) > LONGEST_NAME for name in entity):
            raise KorvetError(Errors.INVALID_REQUEST, f"names in a quota have {LONGEST_NAME} characters at most")
        async with self._changing:
            for _ in range(_TRIES):
                if await self._alter(entity, wanted, by, validate=validate):
                    return
        raise StoreError("other brokers change this quota all the time; try again")

    async def _alter(
        self, entity: QuotaEntity, wanted: Mapping[QuotaKey, float | None], by: str, *, validate: bool
    ) -> bool:
        """False if another broker was faster."""
        key = _find_key(entity)
        packed = await self._store.load(key)
        before = {} if packed is None else self._read_one(key, packed).quotas
        after = {name: value for name, value in {**before, **wanted}.items() if value is not None}
        if packed is None and after and len(self._by_key) >= MOST:
            raise KorvetError(Errors.POLICY_VIOLATION, f"a cluster has quotas of {MOST:,} entities at most")
        if validate:
            return True
        if after != before:
            new = _pack(entity, after) if after else None
            if not await self._store.save(key, new, packed):
                return False
            packed = new
            logger.info("quotas of %s: %s, as %s asked", printable(str(entity)), _describe(after), printable(by))
        if packed is None:
            self._by_key.pop(key, None)
        else:
            self._by_key[key] = _Document(packed, entity, after)
        self.quotas.alter(entity, after)
        return True

    async def _refresh(self) -> None:
        while (reading := await self._reader.read()) is not None:
            present = await self._read(reading.documents)
            broken = reading.generation != self._reader.history
            lost = {key: document for key, document in self._by_key.items() if broken and key not in present}
            for key, document in lost.items():
                await self._store.save(key, document.packed, None)
            if not lost:
                self._apply(present)
                self._reader.mark_seen(reading)
                return
            self._reader.history = reading.generation
            logger.warning("the store had forgotten %d quotas, and this broker wrote them again", len(lost))
            # Another broker may have been faster, so all are read once more.

    async def _read(self, values: Mapping[str, bytes]) -> dict[str, _Document]:
        found, pace = {}, BackgroundPace()
        for key, packed in values.items():
            found[key] = self._read_one(key, packed)
            if pace.due():
                await pace.turn()
        return found

    def _read_one(self, key: str, packed: bytes) -> _Document:
        known = self._by_key.get(key)
        return known if known is not None and known.packed == packed else _unpack(key, packed)

    def _apply(self, by_key: dict[str, _Document]) -> None:
        if by_key != self._by_key:
            self._by_key = by_key
            self.quotas.replace({each.entity: each.quotas for each in by_key.values() if each.quotas})


def _find_key(entity: QuotaEntity) -> str:
    return _PREFIX + sha256(json.dumps(list(entity)).encode()).hexdigest()


def _pack(entity: QuotaEntity, quotas: Quotas) -> bytes:
    return json.dumps({"entity": list(entity), "quotas": quotas}).encode()


def _unpack(key: str, packed: bytes) -> _Document:
    """The document; one without quotas, which may be written over, if it cannot be read."""
    try:
        read = json.loads(packed)
        user, client_id = read["entity"]
        if not isinstance(user, str | None) or not isinstance(client_id, str | None):
            raise TypeError(f"the names of the entity {read['entity']} are no texts")
        quotas = {check_quota(name, value): value for name, value in read["quotas"].items()}
    except (LookupError, ValueError, TypeError, AttributeError, KorvetError) as error:
        logger.warning("the quota under %s in the registry cannot be read, and does not hold: %s", key, error)
        return _Document(packed, QuotaEntity(None, None), {})
    return _Document(packed, QuotaEntity(user, client_id), quotas)


def _describe(quotas: Quotas) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in sorted(quotas.items())) or "none"
