"""A broker's own record: an id is claimed, the record is rewritten with every heartbeat, and taken out in the end.

All of it is compare-and-set, so of two brokers that want one id, one gets it.
"""

import logging
from typing import TypeAlias

from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.broker_registration import LEAVING, PREFIX, BrokerRegistration, read_registration
from korvet_fast.core.cluster.liveness import Liveness
from korvet_fast.errors import SettingError
from korvet_fast.store.interface import KeyStore
from korvet_fast.store.types import ABSENT

logger = logging.getLogger(__name__)

Registrations: TypeAlias = dict[int, tuple[BrokerRegistration, bytes]]  # by id: a record, and its bytes


async def read_registrations(store: KeyStore) -> Registrations:
    """All brokers' records. Raises `StoreError`."""
    found: Registrations = {}
    for document in (await store.scan(PREFIX)).values():
        member = read_registration(document)
        found[member.id] = member, document
    return found


def choose_id(records: Registrations, wanted: int | None, former: set[int], dead: set[int]) -> int | None:
    """The id for a newcomer: the one it wants, else its predecessor's, else the smallest that is free.

    None if a broker that may be alive has the wanted one. `former`: ids of brokers that had this broker's address
    before. `dead`: ids of brokers that were not heard of for a lease, or whose process is known to have ended.
    """
    if wanted is not None:
        return wanted if wanted not in records or wanted in former | dead else None
    if former:
        return min(former)
    return next(identity for identity in range(1, len(records) + 2) if identity not in records)


class BrokerLifecycle:
    """The record of this broker. `registration.id` is -1 until an id was claimed."""

    def __init__(
        self, store: KeyStore, clock: Clock, me: BrokerRegistration, wanted: int | None, *, needs_id: bool
    ) -> None:
        """`needs_id`: brokers cannot be without `wanted` here."""
        self.registration = me
        self._wanted = wanted
        self._or_none = "" if needs_id else ", or none: then it takes one that is free"
        self._store = store
        self._clock = clock
        self._document: bytes | None = ABSENT  # as it stands in the registry

    async def claim(self, liveness: Liveness, interval: float) -> None:
        """Take an id; waits up to a lease to see whether the broker that has the wanted one is dead.

        Raises `SettingError` if that broker is alive, or `StoreError`.
        """
        rival: BrokerRegistration | None = None
        while True:
            records = await read_registrations(self._store)
            dead = liveness.observe((member for member, _ in records.values()), self._clock.monotonic())
            former = {identity for identity, (member, _) in records.items() if member.precedes(self.registration)}
            if await self.try_claim(records, dead, former):
                for identity in former - {self.registration.id}:
                    await self._store.save(f"{PREFIX}{identity}", ABSENT, records[identity][1])
                return
            if self._wanted is None or self._wanted not in records:
                continue  # somebody was quicker, or has just gone
            present, _ = records[self._wanted]
            if rival is None:
                text = "another broker had node.id=%d: waiting up to %g s to see whether it is still there"
                logger.info(text, present.id, liveness.lease)
            elif rival[:2] == present[:2] and rival.heartbeat != present.heartbeat and present.state != LEAVING:
                raise SettingError(
                    f"node.id={present.id} belongs to the broker at {present.addresses[0].address}, which is alive. "
                    f"Give each broker a node.id of its own{self._or_none}"
                )
            rival = present
            await self._clock.sleep(interval / 4)

    async def try_claim(self, records: Registrations, dead: set[int], former: set[int]) -> bool:
        """Take an id if there is one for us at this moment (see `choose_id`). Raises `StoreError`."""
        place = choose_id(records, self._wanted, former, dead)
        if place is None:
            return False
        member = self.registration._replace(id=place)
        document = member.write()
        if not await self._store.save(member.key, document, records[place][1] if place in records else ABSENT):
            return False
        self.registration, self._document = member, document
        return True

    async def renew(self, state: str) -> bool:
        """Send one heartbeat; False if the record is not ours any more.

        Raises `StoreError`: then it may be written or not.
        """
        for _ in range(2):
            member = self.registration._replace(state=state, heartbeat=self.registration.heartbeat + 1)
            document = member.write()
            if await self._store.save(member.key, document, self._document):
                self.registration, self._document = member, document
                return True
            # The outcome of an earlier heartbeat was unknown, or the server lost the last ones: go on from its record.
            present = await self._store.load(member.key)
            if present is None or read_registration(present).incarnation != member.incarnation:
                return False
            self._document = present
            self.registration = self.registration._replace(
                heartbeat=max(self.registration.heartbeat, read_registration(present).heartbeat)
            )
        return False

    async def withdraw(self) -> None:
        """Remove the record, if it is ours. Raises `StoreError`."""
        if await self._store.save(self.registration.key, ABSENT, self._document):
            return
        present = await self._store.load(self.registration.key)
        if present is not None and read_registration(present).incarnation == self.registration.incarnation:
            await self._store.save(self.registration.key, ABSENT, present)
