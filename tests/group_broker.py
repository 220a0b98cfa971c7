"""A broker whose groups are asked directly, over an embedded store whose saves wait, fail or lie when told to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from core_world import StillClock
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.groups.coordinator import Coordinator, Position
from korvet_fast.core.groups.documents import Place
from korvet_fast.core.groups.members import Join, Joined, Sync, Synced
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Change

GROUP = "g"


class SlowStore:
    """An embedded store. `hold`: saves of groups wait for it. `refuse`: they fail. `blind`: they find another value.

    `unreadable`: groups cannot be loaded.
    """

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.hold: asyncio.Event | None = None
        self.refuse = ""
        self.blind = False
        self.unreadable = False
        self.saves = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        if self.unreadable and prefix.startswith("groups-"):
            raise StoreError("nothing can be read")
        return await self.store.scan(prefix)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        if not key.startswith("groups-"):
            return await self.store.save(key, value, expected, *others)
        self.saves += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.refuse:
            raise StoreError(self.refuse)
        return not self.blind and await self.store.save(key, value, expected, *others)


class Groups:
    """The broker, and what its groups are asked."""

    def __init__(self, broker: Broker, clock: StillClock, store: SlowStore) -> None:
        self.broker = broker
        self.clock = clock
        self.store = store
        self._ids = 0

    @property
    def groups(self) -> Coordinator:
        return self.broker.groups

    def join(self, member_id: str = "", group_id: str = GROUP, **given: Any) -> "asyncio.Future[Joined]":
        self._ids += 1
        values: dict[str, Any] = {
            "instance_id": None,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "protocol_type": "consumer",
            "protocols": (("range", b"metadata"),),
            "session": 10.0,
            "rebalance": 30.0,
            "fresh_id": f"m{self._ids}",
            "twice": False,
            "skips": True,
        }
        return self.groups.join(group_id, Join(member_id, **values | given))

    def sync(self, joined: Joined, assignments: dict[str, bytes] | None = None) -> "asyncio.Future[Synced]":
        ask = Sync(joined.member_id, None, joined.generation, None, None, assignments or {})
        return self.groups.sync(GROUP, ask)

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass, and have it noticed."""
        self.clock.seconds += seconds
        for keeper in self.groups.keepers:
            keeper.tick()

    async def form(self) -> Joined:
        """A group of one member, stable."""
        joined = await self.join()
        assert joined.fault == ""
        assert (await self.sync(joined, {joined.member_id: b"all"})).assignment == b"all"
        return joined

    async def commit(self, offset: int, joined: Joined | None = None, *, topic: str = "t", **given: Any) -> str:
        who = (joined.member_id, None, joined.generation) if joined else ("", None, -1)
        place = Place(topic, 0)
        return (await self.groups.commit(GROUP, *who, {place: Position(offset, **given)}))[place]

    async def fetch(self, topic: str = "t") -> int:
        """The offset committed; -1 if there is none."""
        fault, found = await self.groups.fetch(GROUP, [Place(topic, 0)])
        assert fault == ""
        return found[Place(topic, 0)].offset if found else -1


@asynccontextmanager
async def run_groups(data: Path, *flags: str) -> AsyncIterator[Groups]:
    """A broker with a topic `t`; a group forms without delay unless `flags` say otherwise."""
    clock = StillClock()
    store = SlowStore(EmbeddedStore(data))
    broker = Broker(store, read_settings(("group.initial.rebalance.delay.ms=0", *flags)), clock)
    await broker.open()
    try:
        if broker.topics.get("t") is None:
            await broker.topics.create("t", 2, {})
        yield Groups(broker, clock, store)
    finally:
        await broker.close()


async def until(true: Callable[[], bool]) -> None:
    """Let the loop turn until this holds; the test's time limit ends a vain wait."""
    while not true():
        await asyncio.sleep(0.001)
