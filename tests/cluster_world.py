"""Several brokers' views over one registry, on a clock that moves when a test says so."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from korvet_fast.config import read_settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.generation import MetadataVersion
from korvet_fast.endpoint import KAFKA, Endpoint
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import Processes, Store

INTERVAL, LEASE = 2.0, 9.0
STEP = INTERVAL / 8
TOPIC = bytes(range(16))


class Registry:
    """The registry's three verbs over a dictionary, with faults; there is nothing else in this store."""

    def __init__(self) -> None:
        self.shared = self
        self.processes: Processes | None = None
        self.keys: dict[str, bytes] = {}
        self.down = False  # nothing is answered
        self.refusing = False  # reads are answered, writes are not
        self.forgetful = False  # writes are carried out, and their answers are lost

    def _answer(self, *, writing: bool = False) -> None:
        if self.down or (writing and self.refusing):
            raise StoreError("the registry does not answer")

    async def load(self, key: str) -> bytes | None:
        self._answer()
        return self.keys.get(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None) -> bool:
        self._answer(writing=True)
        if self.keys.get(key) != expected:
            return False
        if value is None:
            self.keys.pop(key, None)
        else:
            self.keys[key] = value
        if self.forgetful:
            raise StoreError("the answer was lost")
        return True

    async def scan(self, prefix: str) -> dict[str, bytes]:
        self._answer()
        return {key: value for key, value in sorted(self.keys.items()) if key.startswith(prefix)}


class TurningClock(Clock):
    """Time that passes in `sleep` only; `passing` is awaited after each step of it."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.passing: Callable[[], Awaitable[None]] | None = None

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        end = self.seconds + seconds
        while self.seconds < end:
            self.seconds = min(self.seconds + STEP, end)
            if self.passing is not None:
                await self.passing()


class One:
    """A broker of the test, its view, and how often it learned of something new."""

    def __init__(self, registry: Registry, clock: Clock, port: int, *flags: str, reads_lag: bool = False) -> None:
        self.address = Endpoint(KAFKA, "127.0.0.1", port)
        self.news = 0
        self.runs = False
        self.metadata = MetadataVersion()
        self.cluster = Cluster(
            cast(Store, registry), clock, self.metadata, read_settings(flags), self._refreshed, reads_lag
        )

    def _refreshed(self, changed: bool) -> None:
        self.news += changed

    @property
    def ids(self) -> list[int]:
        return [member.id for member in self.cluster.members]

    @property
    def preferred_leaders(self) -> list[int]:
        """Who is to lead the partitions of some topic."""
        return list(self.cluster.preferred_leaders(TOPIC, 12))

    @property
    def leads(self) -> bool:
        """Whether the broker would answer for partitions at all."""
        return self.runs and self.cluster.holds_lease() and self.cluster.id in self.ids


class Scene:
    """`step` lets time pass; every broker that runs looks a few times in a heartbeat interval, as it does in life."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.clock = TurningClock()
        self.clock.passing = self._pass
        self.ones: list[One] = []
        self._ports = 9000

    async def start(self, *flags: str, port: int = 0, reads_lag: bool = False) -> One:
        if not port:
            self._ports += 1
        one = One(self.registry, self.clock, port or self._ports, *flags, reads_lag=reads_lag)
        await one.cluster.join([one.address])
        await one.cluster.serve()
        one.runs = True
        self.ones.append(one)
        return one

    async def step(self, seconds: float = STEP) -> None:
        await self.clock.sleep(seconds)

    async def _pass(self) -> None:
        for one in self.ones:
            if one.runs:
                await one.cluster.poll()


def play(scenario: Callable[[Scene], Awaitable[Any]]) -> None:
    """Run a scenario; the scene's clock drives the brokers, not their own loops (`Cluster.run`)."""

    async def run() -> None:
        scene = Scene()
        await scenario(scene)
        for one in scene.ones:
            await one.cluster.close()

    asyncio.run(run())
