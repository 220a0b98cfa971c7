"""The brokers of a store as this one sees them, and its own place among them.

Who has a record is there. A broker whose beat stops is buried: its record is deleted by compare-and-set, and only then
do the others take over what it led; so all agree on who is there, but for the time between two looks. In that time
two may think that they lead a partition: the store's fence decides, never this view.
"""

import asyncio
import logging
import platform
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from korvet_fast.config import Settings, Source
from korvet_fast.core.cluster.assignment import assign
from korvet_fast.core.cluster.liveness import Liveness
from korvet_fast.core.cluster.member import LEAVING, SERVING, STARTING, Member
from korvet_fast.core.cluster.registration import Records, Registration, read_records
from korvet_fast.core.host import Host
from korvet_fast.core.types import Address
from korvet_fast.errors import SettingError, StoreError
from korvet_fast.store.interface import ABSENT

logger = logging.getLogger(__name__)

_LOOKS = 8  # in a heartbeat interval
_SOON = 0.05  # seconds between two looks, at least
_FOREVER = float("inf")


class Place(NamedTuple):
    """Where clients are told to find a broker."""

    id: int
    address: Address


class Cluster:
    """`join`, `serve`, then use while `run` runs, then `leave`, `close`.

    `members`: those who lead partitions, by id. `lease`: seconds of silence after which a broker is dead. `seen` is
    called after every look, with whether the members changed or the look was asked for. A store that is not shared has
    one broker, without a record. `returns`: how often the others have taken this one for dead while it lived.
    """

    def __init__(self, host: Host, settings: Settings, seen: Callable[[bool], None]) -> None:
        self.members: tuple[Member, ...] = ()
        self._host = host
        self._seen = seen
        self.returns = 0
        self.lease = settings.number("broker.session.timeout.ms") / 1000
        self._interval = settings.number("broker.heartbeat.interval.ms") / 1000
        if self.lease < 2 * self._interval:
            raise SettingError("broker.session.timeout.ms must be at least twice broker.heartbeat.interval.ms")
        own = settings.number("node.id")
        self._wanted = own if settings.source("node.id") is not Source.DEFAULT else None
        me = Member(-1 if host.store.shared else own, secrets.token_hex(8), platform.node(), ())
        self._registration = Registration(host.store, host.clock, me, self._wanted)
        self._liveness = Liveness(self.lease, self._interval)
        self._state = STARTING
        self._held_until = -_FOREVER if host.store.shared else _FOREVER
        self._beat_at = -_FOREVER
        self._targets: dict[bytes, list[int]] = {}
        self._looking = asyncio.Lock()
        self._asked = asyncio.Event()
        self._complaint = ""
        self._ended = False

    # -- who is there ----------------------------------------------------------------------------------------------

    @property
    def id(self) -> int:
        """This broker's id."""
        return self._registration.member.id

    @property
    def incarnation(self) -> str:
        """A mark of this process: another one, be it under the same id, has another."""
        return self._registration.member.incarnation

    def has(self, incarnation: str) -> bool:
        """Whether the process with this mark is there."""
        return any(member.incarnation == incarnation for member in self.members)

    @property
    def there(self) -> bool:
        """Whether this broker is one of those who lead partitions."""
        return any(member.id == self.id for member in self.members)

    @property
    def alone(self) -> bool:
        """Whether there is nobody to take over from this broker."""
        return not any(member.id != self.id and member.state == SERVING for member in self.members)

    @property
    def controller(self) -> int:
        """The id of the broker that is named as controller; any may be asked what only Kafka's controller can do."""
        return self.members[0].id if self.members else self.id

    def places(self, listener: int) -> list[Place]:
        """The brokers that a client of our `listener` (its number, from 0) can connect to."""
        return [
            Place(member.id, member.addresses[listener]) for member in self.members if listener < len(member.addresses)
        ]

    def targets(self, topic: bytes, partitions: int) -> Sequence[int]:
        """For each partition of the topic with this id, the id of the broker that is to lead it; -1 if none is there.

        Who really leads is what the brokers claim (see `claims`).
        """
        known = self._targets.get(topic)
        if known is None or len(known) != partitions:
            ids = [member.id for member in self.members if member.state == SERVING]
            known = self._targets[topic] = assign(topic, partitions, ids) if ids else [-1] * partitions
        return known

    def holds(self) -> bool:
        """Whether this broker may count on its record: it saw it not long ago."""
        return self._held_until == _FOREVER or self._host.clock.monotonic() < self._held_until

    # -- coming and going ------------------------------------------------------------------------------------------

    async def join(self, addresses: Sequence[Address]) -> None:
        """Take an id. Raises `SettingError` if another broker has the one that was asked for, or `StoreError`."""
        registration = self._registration
        registration.member = registration.member._replace(addresses=tuple(addresses))
        if self._host.store.shared:
            await registration.claim(self.lease, self._interval)
            await self.look()
        else:
            self._see([registration.member._replace(state=SERVING)])

    async def serve(self) -> None:
        """From now on the others count on this broker. Raises `StoreError`."""
        self._state = SERVING
        if self._host.store.shared:
            self._beat_at = -_FOREVER
            await self.look()

    async def leave(self) -> None:
        """Tell the others to take over. Raises `StoreError`."""
        self._state = LEAVING
        if self._host.store.shared:
            self._beat_at = -_FOREVER
            await self.look()

    async def close(self) -> None:
        """Take the record out. The store must still be open."""
        self._ended = True
        self._asked.set()
        if not self._host.store.shared or not self.holds():
            return
        async with self._looking:
            try:
                await self._registration.withdraw()
            except StoreError as error:
                logger.warning("the other brokers have to find out that this one is gone: %s", error.detail)

    # -- looking ---------------------------------------------------------------------------------------------------

    def look_soon(self) -> None:
        """Something is not as the view says: look again."""
        self._asked.set()

    async def run(self) -> None:
        """Look from time to time, and when asked to, until `close`."""
        while not self._ended:
            await asyncio.sleep(_SOON)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._interval / _LOOKS - _SOON)):
                    await self._asked.wait()
            await self.tend()

    async def tend(self) -> None:
        """Look; failures are logged."""
        try:
            await self.look()
        except StoreError as error:
            self._complain(error.detail)

    async def look(self) -> None:
        """Beat if it is time, see who is there, bury the dead. Raises `StoreError`."""
        async with self._looking:
            if self._ended:
                return
            asked = self._asked.is_set()
            self._asked.clear()
            self._seen(await self._look() or asked)

    async def _look(self) -> bool:
        """Whether the members changed."""
        began = self._host.clock.monotonic()
        failure = None
        try:
            await self._beat(began)
        except StoreError as error:
            failure = error
        records = await read_records(self._host.store)
        mine = records.get(self.id)
        if mine is None or mine[0].incarnation != self._registration.member.incarnation:
            return await self._return(records)
        self._held_until = began + self.lease - self._interval
        if failure is not None:
            self._complain(failure.detail)  # nobody's silence says anything while the store takes nothing from us
        else:
            self._complaint = ""
            records = await self._bury(records)
        return self._see([member for member, _ in records.values()])

    async def _beat(self, now: float) -> None:
        if now - self._beat_at >= self._interval:
            await self._registration.renew(self._state)
            self._beat_at = now

    async def _bury(self, records: Records) -> Records:
        """Delete the records of those who are dead; what is left."""
        silent = self._liveness.observe((member for member, _ in records.values()), self._host.clock.monotonic())
        left = dict(records)
        for identity in silent - {self.id}:
            member, document = left.pop(identity)
            if await self._host.store.save(member.key, ABSENT, document):
                host, port = member.addresses[0]
                logger.warning("broker %d at %s:%d is gone: nothing heard for %g s", identity, host, port, self.lease)
        return left

    async def _return(self, records: Records) -> bool:
        """Our record is gone: the others took us for dead. Give everything up, then come back; True."""
        self._held_until = self._beat_at = -_FOREVER
        self.returns += 1
        changed = self._see([member for member, _ in records.values()])
        silent = self._liveness.observe((member for member, _ in records.values()), self._host.clock.monotonic())
        if await self._registration.try_claim(records, silent, set()):
            logger.warning("the other brokers took this one for gone; it is back as broker %d", self.id)
            self._asked.set()
        else:
            self._complain(f"node.id={self.id} was taken over by another broker: this one leads nothing")
        return changed

    def _see(self, present: list[Member]) -> bool:
        members = tuple(sorted(member._replace(beat=0) for member in present if member.state != STARTING))
        if members == self.members:
            return False
        self.members = members
        self._targets.clear()
        self._host.version += 1
        return True

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            logger.error("the place among the brokers cannot be renewed: %s", reason)
            self._complaint = reason
