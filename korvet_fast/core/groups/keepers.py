"""The groups that this broker coordinates: taken over and given up by slots, loaded, loaded again after failures.

Who coordinates a slot follows from who is there (`cluster.targets`): all brokers come to the same answer, but for the
time between two looks. In that time whoever had a slot goes on with it, and then releases it for the other (`fence`).
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, TypeAlias

from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.standing import Standing
from korvet_fast.core.eager import each
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import (
    SLOTS,
    AnyGroup,
    group_key,
    is_newer,
    parse_key,
    slot_of,
    slot_prefix,
    unpack_group,
)
from korvet_fast.core.groups.fence import Fence, owner_key
from korvet_fast.core.groups.group import Group, Rules
from korvet_fast.core.groups.keeper import Keeper
from korvet_fast.core.groups.offsets import Offsets
from korvet_fast.core.groups.records import Moved, Records
from korvet_fast.core.host import Host
from korvet_fast.errors import StoreError

log = logging.getLogger(__name__)

_AGAIN = 1.0  # seconds between two tries to load what the store did not give
_SHARES: Final = b"consumer groups\0"  # slots are shared out like the partitions of a topic with this id

Documents: TypeAlias = dict[str, dict[str, bytes]]  # by group id: its keys and what stands under them


class Keepers:
    """By group id. `open`, then use, then `close`."""

    def __init__(self, host: Host, cluster: Cluster, rules: Rules) -> None:
        self._host = host
        self._cluster = cluster
        self._rules = rules
        self._by_id: dict[str, Keeper] = {}
        self._held: set[int] = set()  # slots
        self._unread: set[int] = set()  # those of them that have to be loaded
        self._standing = Standing(cluster)
        self._blocked: dict[int, float] = {}  # unread ones that another broker has: since when, monotonic
        self._unreleased: set[int] = set()  # not held any more, but nobody has been told so yet
        self._fences = [Fence(host.store, slot, cluster.incarnation) for slot in range(SLOTS)]
        self._lost: dict[int, dict[str, Keeper]] = {}  # by slot: groups that have to be loaded again
        self._settling = asyncio.Lock()
        self._stop = asyncio.Event()

    def __iter__(self) -> Iterator[Keeper]:
        return iter(list(self._by_id.values()))

    def get(self, group_id: str) -> Keeper | None:
        return self._by_id.get(group_id)

    def find(self, group_id: str) -> int:
        """The id of the broker that coordinates a group; -1 if none is there."""
        return self._cluster.targets(_SHARES, SLOTS)[slot_of(group_id)]

    def fault_of(self, group_id: str) -> str:
        """Why this broker cannot say anything about a group now; "" if it can."""
        slot = slot_of(group_id)
        if slot not in self._held or not self._standing.valid:
            self._cluster.look_soon()
            return "NOT_COORDINATOR"
        loading = slot in self._unread or group_id in self._lost.get(slot, ())
        return "COORDINATOR_LOAD_IN_PROGRESS" if loading else ""

    @property
    def incomplete(self) -> bool:
        """Whether groups of this broker are still to be loaded."""
        return bool(self._unread or self._lost)

    async def pause(self, seconds: float) -> bool:
        """Wait so long; False at the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        return not self._stop.is_set()

    def close(self) -> None:
        """Whoever waits is told to look for another coordinator. What is being stored goes on."""
        self._stop.set()
        self._give_up(set(self._held))

    # -- slots -------------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Coordinate what falls to this broker now, and nothing else. Raises `StoreError`; then call it again."""
        async with self._settling:
            if self._stop.is_set():
                return
            if self._standing.renew():
                self._give_up(set(self._held))
            shares = self._cluster.targets(_SHARES, SLOTS)
            mine = {slot for slot, broker in enumerate(shares) if broker == self._cluster.id}
            self._unreleased = (self._unreleased | self._held) - mine
            self._give_up(self._held - mine)
            await each(list(self._unreleased), self._release)
            self._unread |= mine - self._held
            self._held |= mine
            await each(list(self._unread), self._load)

    def _give_up(self, slots: set[int]) -> None:
        self._held -= slots
        self._unread -= slots
        for slot in slots:
            self._lost.pop(slot, None)
            self._blocked.pop(slot, None)
        for keeper in self:
            if slot_of(keeper.id) in slots:
                del self._by_id[keeper.id]
                keeper.end("NOT_COORDINATOR")

    async def _release(self, slot: int) -> None:
        await self._fences[slot].release()
        self._unreleased.discard(slot)

    async def _load(self, slot: int) -> None:
        """Unless another broker still has it, and lives: it will see that it has to release it."""
        now = self._host.clock.monotonic()
        patient = now - self._blocked.setdefault(slot, now) < self._cluster.lease
        if not await self._fences[slot].take(self._cluster.id, lambda process: patient and self._cluster.has(process)):
            self._cluster.look_soon()
            return
        self._blocked.pop(slot, None)
        documents = await self._read(slot)
        if slot in self._unread:
            self._unread.discard(slot)
            for group_id, known in documents.items():
                self._enter(group_id, known)

    async def _read(self, slot: int) -> Documents:
        documents: Documents = {}
        found = await self._host.store.scan(slot_prefix(slot))
        found.pop(owner_key(slot), None)
        for key, document in found.items():
            documents.setdefault(parse_key(key)[0], {})[key] = document
        return documents

    # -- groups ------------------------------------------------------------------------------------------------------

    def make(self, group_id: str) -> Keeper:
        """A new group, of which nothing is stored yet."""
        return self._enter(group_id, {})

    def _enter(self, group_id: str, known: dict[str, bytes]) -> Keeper:
        """`known`: what the registry has of it."""
        group: AnyGroup = Group(self._rules)
        since = self._host.clock.wall()
        packed = {}
        for key, document in known.items():
            _, place = parse_key(key)
            if place is None:
                group, since = unpack_group(document, self._rules)
            else:
                packed[place] = document
        if isinstance(group, ConsumerGroup) and self._host.forks:
            group.leap()
        group.resume(self._host.clock.monotonic())
        records = self._records(group_id, known)
        offsets = Offsets(self._host, group_id, records, packed)
        keeper = Keeper(self._host, group_id, group, since, offsets, records, self)
        self._by_id[group_id] = keeper
        return keeper

    def _records(self, group_id: str, known: dict[str, bytes]) -> Records:
        return Records(self._host.store, self._fences[slot_of(group_id)].comparison, known)

    def forget(self, keeper: Keeper) -> None:
        """There is nothing that the registry would not have."""
        if self._by_id.get(keeper.id) is keeper:
            del self._by_id[keeper.id]
            keeper.end("COORDINATOR_NOT_AVAILABLE")

    def fail(self, keeper: Keeper, failure: Moved | StoreError) -> None:
        """What is in memory may not be what is stored: load the group again."""
        if self._by_id.get(keeper.id) is not keeper:
            return
        log.warning("group %s is loaded again: %s", keeper.id, failure)
        del self._by_id[keeper.id]
        slot = slot_of(keeper.id)
        if slot not in self._lost:
            self._lost[slot] = {}
            self._host.start(self._repair(slot, self._lost[slot]))
        self._lost[slot][keeper.id] = keeper
        keeper.end("NOT_COORDINATOR" if isinstance(failure, Moved) else "COORDINATOR_NOT_AVAILABLE")

    def restore(self) -> None:
        """The server's history broke: see what it still knows, and tell it the rest again."""
        for keeper in self:
            if keeper.forks != self._host.forks:
                self.fail(keeper, Moved("the server may have forgotten it"))

    async def _repair(self, slot: int, lost: dict[str, Keeper]) -> None:
        while lost and self._lost.get(slot) is lost:
            try:
                if not await self._fences[slot].keep(self._cluster.id):
                    log.warning("another broker has taken over the groups of slot %d", slot)
                    self._give_up({slot})
                    self._cluster.look_soon()
                    return
                documents = await self._read(slot)
                for group_id, keeper in list(lost.items()):
                    known = documents.get(group_id, {})
                    await self._remind(keeper, known)
                    if self._lost.get(slot) is not lost:
                        return
                    del lost[group_id]
                    self._enter(group_id, known)
            except (Moved, StoreError) as failure:
                log.debug("slot %d cannot be loaded yet: %s", slot, failure)
                await self.pause(_AGAIN)
        if self._lost.get(slot) is lost:
            del self._lost[slot]

    async def _remind(self, keeper: Keeper, known: dict[str, bytes]) -> None:
        """A store that has lost its last changes is told them again: no generation comes twice, no commit is lost.

        `known`: what it has now; also changed. Raises as `Records.write`.
        """
        told = keeper.records.known
        key = group_key(keeper.id)
        forgot = key in told and is_newer(key, told[key], known.get(key))
        if forgot or keeper.forks != self._host.forks:
            changes: dict[str, bytes | None] = {
                key: document for key, document in told.items() if is_newer(key, document, known.get(key))
            }
            if changes:
                log.error("group %s: the store has lost %d changes, and is told them again", keeper.id, len(changes))
                await self._records(keeper.id, known).write(changes)
