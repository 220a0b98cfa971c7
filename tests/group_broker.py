"""A broker whose groups are asked directly, over an embedded store whose saves wait, fail or lie when told to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from core_world import StillClock
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.groups.classic.requests import JoinRequest, JoinResult, SyncRequest, SyncResult
from korvet_fast.core.groups.coordinator import GroupCoordinator
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import CompareAndSet

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

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
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
    def coordinator(self) -> GroupCoordinator:
        return self.broker.groups

    def join(self, member_id: str = "", group_id: str = GROUP, **given: Any) -> "asyncio.Future[JoinResult]":
        self._ids += 1
        values: dict[str, Any] = {
            "instance_id": None,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "protocol_type": "consumer",
            "protocols": (("range", b"metadata"),),
            "session_timeout": 10.0,
            "rebalance_timeout": 30.0,
            "new_member_id": f"m{self._ids}",
            "requires_member_id": False,
            "supports_skipping_assignment": True,
        }
        return self.coordinator.classic.join(group_id, JoinRequest(member_id, **values | given))

    def sync(self, joined: JoinResult, assignments: dict[str, bytes] | None = None) -> "asyncio.Future[SyncResult]":
        ask = SyncRequest(joined.member_id, None, joined.generation, None, None, assignments or {})
        return self.coordinator.classic.sync(GROUP, ask)

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass, and have it noticed."""
        self.clock.seconds += seconds
        for runtime in self.coordinator.partitions.runtimes:
            runtime.tick()

    async def form(self) -> JoinResult:
        """A group of one member, stable."""
        joined = await self.join()
        assert joined.error == ""
        assert (await self.sync(joined, {joined.member_id: b"all"})).assignment == b"all"
        return joined

    async def commit(
        self, offset: int, joined: JoinResult | None = None, *, topic: str = "t", retention_ms: int = -1, **given: Any
    ) -> str:
        who = (joined.member_id, None, joined.generation) if joined else ("", None, -1)
        partition = TopicPartition(topic, 0)
        offsets = {partition: OffsetAndMetadata(offset, **given)}
        errors = await self.coordinator.offsets.commit(GROUP, *who, offsets, retention_ms=retention_ms)
        return errors[partition]

    async def fetch(self, topic: str = "t") -> int:
        """The offset committed; -1 if there is none."""
        error, found = await self.coordinator.offsets.fetch(GROUP, [TopicPartition(topic, 0)])
        assert error == ""
        return found[TopicPartition(topic, 0)].offset if found else -1


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
