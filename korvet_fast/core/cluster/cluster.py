"""The brokers of a store as this broker sees them, and its own record among theirs.

A broker that has a record is a member. If its heartbeats stop, or the store knows that its process has ended, the
others delete its record by compare-and-set, and only then take over what it led. So all brokers agree on the members,
but for the time between two refreshes. In that time two brokers may think that they lead a partition: the store fences
one of them, and this view decides nothing.
"""

import asyncio
import logging
import platform
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress

from korvet_fast.config import Settings, Source
from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.assignment import assign
from korvet_fast.core.cluster.broker_registration import LEAVING, SERVING, STARTING, BrokerRegistration
from korvet_fast.core.cluster.former_members import FormerMembers
from korvet_fast.core.cluster.lifecycle import BrokerLifecycle, Registrations, read_registrations
from korvet_fast.core.cluster.liveness import Liveness
from korvet_fast.core.cluster.nodes import Node, find_nodes
from korvet_fast.core.generation import MetadataVersion
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError, StoreError
from korvet_fast.store.interface import Store
from korvet_fast.store.types import ABSENT

logger = logging.getLogger(__name__)

_REFRESHES = 8  # in a heartbeat interval
_SOON = 0.05  # seconds between two refreshes, at least
_FOREVER = float("inf")


class Cluster:
    """The brokers of a store. Call `join` and `serve`, use it while `run` runs, then call `leave` and `close`.

    `members`: the brokers that lead partitions, by id. `is_shared`: others may be there. `lease`: seconds of silence
    after which a broker counts as dead.
    `refreshed` is called after every refresh, with whether the members changed or somebody asked for the refresh.
    `re_registrations`: how often the others have taken this broker for dead while it lived. `former`: the members of a
    history of the store that broke. A store that is not shared has one broker, without a record.
    `has_ended`: whether the process with an incarnation is known to have ended; it stays a member as long as the store
    takes no change.
    `reads_lag`: while saves fail, this broker may read what was true before it was cut off, its own record among it.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        metadata: MetadataVersion,
        settings: Settings,
        refreshed: Callable[[bool], None],
        reads_lag: bool = False,
    ) -> None:
        self.members: tuple[BrokerRegistration, ...] = ()
        self.is_shared = store.shared is not None
        self._store = store
        self._clock = clock
        self._metadata = metadata
        self._refreshed = refreshed
        self._reads_lag = reads_lag
        self.re_registrations = 0
        self.lease = settings.number("broker.session.timeout.ms") / 1000
        self._interval = settings.number("broker.heartbeat.interval.ms") / 1000
        if self.lease < 2 * self._interval:
            raise SettingError("broker.session.timeout.ms must be at least twice broker.heartbeat.interval.ms")
        own = settings.number("node.id")
        self._wanted = own if settings.source("node.id") is not Source.DEFAULT else None
        first = -1 if store.shared is not None else own
        processes = store.shared.processes if store.shared is not None else None
        incarnation = secrets.token_hex(8) if processes is None else processes.own
        rack = settings.text("broker.rack") or None
        me = BrokerRegistration(first, incarnation, platform.node(), (), rack=rack)
        needs_id = bool(settings.text("replication.peers"))
        self._lifecycle = BrokerLifecycle(store, clock, me, self._wanted, needs_id=needs_id)
        self._liveness = Liveness(self.lease, self._interval)
        if processes is not None:
            self._liveness.has_ended = processes.has_ended
        self.has_ended = self._liveness.has_ended
        self._state = STARTING
        self._held_until = -_FOREVER if store.shared is not None else _FOREVER
        self._heartbeat_at = -_FOREVER
        self.former = FormerMembers()
        self._preferred: dict[bytes, list[int]] = {}
        self._nodes: dict[int, Sequence[Node]] = {}  # by the number of a listener
        self._refreshing = asyncio.Lock()
        self._asked = asyncio.Event()
        self._complaint = ""
        self._ended = False

    # -- the members -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> int:
        """This broker's id."""
        return self._lifecycle.registration.id

    @property
    def incarnation(self) -> str:
        """A name that only this process has: a later process with the same broker id has another one."""
        return self._lifecycle.registration.incarnation

    def has(self, incarnation: str) -> bool:
        """Whether the process with this incarnation is a member."""
        return any(member.incarnation == incarnation for member in self.members)

    @property
    def is_member(self) -> bool:
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

    def nodes(self, listener: int) -> Sequence[Node]:
        """The brokers that a client of our `listener` (its number, from 0) can connect to, and where.

        See `find_nodes`.
        """
        found = self._nodes.get(listener)
        if found is None:
            own = self._lifecycle.registration.addresses
            found = self._nodes[listener] = find_nodes(self.members, own, listener)
        return found

    def preferred_leaders(self, topic: bytes, partitions: int) -> Sequence[int]:
        """For each partition of the topic with this id, the id of the broker that is to lead it; -1 if none is there.

        The brokers themselves say which they really lead (see `leader_directory`).
        """
        known = self._preferred.get(topic)
        if known is None or len(known) != partitions:
            ids = [member.id for member in self.members if member.state == SERVING]
            known = self._preferred[topic] = assign(topic, partitions, ids) if ids else [-1] * partitions
        return known

    def forget(self, topic: bytes) -> None:
        """Forget the topic with this id: it is deleted."""
        self._preferred.pop(topic, None)

    def holds_lease(self) -> bool:
        """Whether this broker may count on its record: a refresh has found the record within the lease.

        Where reads lag, it was one that sent a heartbeat, or came before the next heartbeat was due.
        """
        return self._held_until == _FOREVER or self._clock.monotonic() < self._held_until

    # -- coming and going ------------------------------------------------------------------------------------------

    async def join(self, addresses: Sequence[Endpoint]) -> None:
        """Take an id. Raises `SettingError` if another broker has the one that was asked for, or `StoreError`."""
        lifecycle = self._lifecycle
        lifecycle.registration = lifecycle.registration._replace(addresses=tuple(addresses))
        if self._store.shared is not None:
            await lifecycle.claim(self._liveness, self._interval)
            await self.refresh()
        else:
            self._update_members([lifecycle.registration._replace(state=SERVING)])

    async def serve(self) -> None:
        """Register as serving: the other brokers assign partitions to this one from now on. Raises `StoreError`."""
        self._state = SERVING
        if self._store.shared is not None:
            self._heartbeat_at = -_FOREVER
            await self.refresh()

    async def leave(self) -> None:
        """Register as leaving: the other brokers take over its partitions. Raises `StoreError`."""
        self._state = LEAVING
        if self._store.shared is not None:
            self._heartbeat_at = -_FOREVER
            await self.refresh()

    async def close(self) -> None:
        """Remove this broker's record from the registry. The store must still be open."""
        self._ended = True
        self._asked.set()
        if self._store.shared is None or not self.holds_lease():
            return
        async with self._refreshing:
            try:
                await self._lifecycle.withdraw()
            except StoreError as error:
                logger.warning("the other brokers have to find out that this one is gone: %s", error.detail)

    # -- refreshing ------------------------------------------------------------------------------------------------

    def refresh_soon(self) -> None:
        """Refresh at once: the caller found this view to be out of date."""
        self._asked.set()

    async def run(self) -> None:
        """Refresh from time to time, and when asked to, until `close`."""
        while not self._ended:
            await asyncio.sleep(_SOON)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._interval / _REFRESHES - _SOON)):
                    await self._asked.wait()
            await self.poll()

    async def poll(self) -> None:
        """Refresh; failures are logged."""
        try:
            await self.refresh()
        except StoreError as error:
            self._complain(error.detail)

    async def refresh(self) -> None:
        """Send a heartbeat if one is due, read the records, expire dead brokers. Raises `StoreError`."""
        async with self._refreshing:
            if self._ended:
                return
            asked = self._asked.is_set()
            self._asked.clear()
            self._refreshed(await self._refresh() or asked)

    async def _refresh(self) -> bool:
        """One refresh; returns whether the members changed."""
        began = self._clock.monotonic()
        failure = None
        try:
            await self._heartbeat(began)
        except StoreError as error:
            failure = error
        registrations = await read_registrations(self._store)
        mine = registrations.get(self.id)
        if mine is None or mine[0].incarnation != self._lifecycle.registration.incarnation:
            return await self._register_again(registrations)
        if failure is None or not self._reads_lag:
            self._held_until = began + self.lease - self._interval
        if failure is not None:
            self._complain(failure.detail)  # while the store takes no heartbeat, the silence of others proves nothing
        else:
            registrations = await self._expire(registrations)
            self._complaint = ""
        return self._update_members([member for member, _ in registrations.values()])

    async def _heartbeat(self, now: float) -> None:
        if now - self._heartbeat_at >= self._interval:
            await self._lifecycle.renew(self._state)
            self._heartbeat_at = now

    async def _expire(self, registrations: Registrations) -> Registrations:
        """Delete the records of brokers that are dead; returns the other records."""
        dead = self._liveness.observe((member for member, _ in registrations.values()), self._clock.monotonic())
        left = dict(registrations)
        for identity in dead - {self.id}:
            member, document = left.pop(identity)
            if await self._store.save(member.key, ABSENT, document):
                place = f" at {member.addresses[0].address}" if member.addresses else ""  # a command has no address
                ended = self.has_ended(member.incarnation)
                why = "its process has ended" if ended else f"nothing heard for {self.lease:g} s"
                logger.warning("broker %d%s is gone: %s", identity, place, why)
        return left

    async def _register_again(self, registrations: Registrations) -> bool:
        """Register again, as the others took this broker for dead; returns whether the members changed."""
        self._held_until = self._heartbeat_at = -_FOREVER
        self.re_registrations += 1
        changed = self._update_members([member for member, _ in registrations.values()])
        dead = self._liveness.observe((member for member, _ in registrations.values()), self._clock.monotonic())
        if await self._lifecycle.try_claim(registrations, dead, {self.id} - registrations.keys()):
            logger.warning(
                "the other brokers took this one for gone, or the registry was lost; it is back as broker %d", self.id
            )
            self._asked.set()
        else:
            self._complain(f"node.id={self.id} was taken over by another broker: this one leads nothing")
        return changed

    def _update_members(self, present: list[BrokerRegistration]) -> bool:
        """Returns whether the members changed."""
        known = [member for member in present if member.state != STARTING]
        known += self.former.missing(present, self._clock.monotonic())
        members = tuple(sorted(member._replace(heartbeat=0) for member in known))
        if members == self.members:
            return False
        self.members = members
        self._nodes = {}
        self._preferred.clear()
        self._metadata.advance()
        return True

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            logger.error("this broker cannot renew its registration, by which the others see it: %s", reason)
            self._complaint = reason
