"""Brokers that keep each other's copies, in one process: real files, and links between them that a test cuts."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest

from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.clock import Clock
from korvet_fast.core.replication import metadata_log, registry
from korvet_fast.core.replication.peers import (
    EpochEnd,
    EpochRequest,
    FetchedLog,
    FetchPosition,
    KeyAnswer,
    KeyRequest,
    NotCarriedOut,
    Vote,
    VoteRequest,
    split_qualified,
)
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.secret import Secret
from korvet_fast.core.replication.static_peers import PROTOCOL, StaticPeers
from korvet_fast.core.replication.store import ReplicatedStore
from korvet_fast.core.topics.topic import Document
from korvet_fast.endpoint import Address
from korvet_fast.errors import OutcomeUnknown
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import LARGE, WHOLE, SegmentLimits
from store.record_batches import make_record_batch, read_all

T = TypeVar("T")
PATIENCE = 240.0  # seconds
MOMENT = 0.1  # seconds


class PatientClock(Clock):
    """Of the time between two looks at it a moment counts at most: brokers of a program that stood still keep up."""

    def __init__(self) -> None:
        self._passed = self._seen = time.monotonic()
        super().__init__()

    def monotonic(self) -> float:
        now = time.monotonic()
        self._passed += min(now - self._seen, MOMENT)
        self._seen = now
        return self._passed


class ScenePeers:
    """The requests of one broker to the others, over links that may be cut."""

    def __init__(self, scene: "ReplicatedScene", own: int) -> None:
        self._scene = scene
        self._own = own

    async def _ask(self, broker: int, work: Callable[[Replication], Awaitable[T]]) -> T:
        await asyncio.sleep(0)
        asked, link = self._scene.brokers.get(broker), frozenset((self._own, broker))
        if asked is None or link in self._scene.cut:
            raise NotCarriedOut(f"broker {broker} is not there")
        answer = await work(asked)
        if link in self._scene.cut:
            raise OutcomeUnknown(f"broker {broker} did not answer")
        return answer

    async def fetch(
        self, broker: int, positions: Sequence[FetchPosition], wait_ms: int, *, catching_up: bool = False
    ) -> list[FetchedLog]:
        asked = [one for one in positions if not self._is_mute(one.log)]
        if not asked:
            raise NotCarriedOut("this log is not copied now")
        answers = await self._ask(broker, lambda there: there.leading.fetch(self._own, asked, wait_ms))
        return [one for one in answers if not self._is_mute(one.log)]

    def _is_mute(self, log: str) -> bool:
        return (self._own, split_qualified(log)[0]) in self._scene.mute

    async def find_epoch_ends(
        self, broker: int, asked: Sequence[EpochRequest], *, catching_up: bool = False
    ) -> list[EpochEnd]:
        async def work(there: Replication) -> list[EpochEnd]:
            return there.leading.find_epoch_ends(asked)

        return await self._ask(broker, work)

    async def ask_keys(self, broker: int, request: KeyRequest) -> KeyAnswer:
        return await self._ask(broker, lambda asked: asked.serve_keys(request))

    async def vote(self, broker: int, request: VoteRequest) -> Vote:
        while broker in self._scene.hung:
            await asyncio.sleep(0.01)
        return await self._ask(broker, lambda asked: asked.election.vote(request))

    async def watch(self) -> None:
        """There are no certificates."""

    async def close(self) -> None:
        """There are no connections."""


class ReplicatedScene:
    """`async with` starts brokers 1, 2 and 3. `cut`: pairs that do not reach each other.

    `mute`: brokers that do not copy a log, though they are there. `hung`: brokers that answer no candidate.
    """

    def __init__(self, place: Path, *settings: str, count: int = 3) -> None:
        self.brokers: dict[int, Replication] = {}
        self.stores: dict[int, ReplicatedStore] = {}
        self.cut: set[frozenset[int]] = set()
        self.hung: set[int] = set()
        self.mute: set[tuple[int, str]] = set()
        self.clock = PatientClock()
        self._place = place
        self._settings = read_settings(["replica.lag.timeout=400", *settings])
        self.ids = tuple(range(1, count + 1))

    async def __aenter__(self) -> Self:
        await self.start(*self.ids)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for identity in list(self.brokers):
            await self.stop(identity)

    async def start(self, *identities: int) -> None:
        """Start these; it returns when the metadata log has a leader."""
        await asyncio.gather(*map(self.begin, identities))

    def begin(self, identity: int) -> "asyncio.Task[None]":
        """Start one; the task ends when the metadata log has a leader."""
        return asyncio.get_running_loop().create_task(self.make(identity).open())

    def make(self, identity: int) -> Replication:
        """One that somebody else opens, and closes."""
        tls = self._settings.text(PROTOCOL) == "SSL"
        static = StaticPeers(identity, dict.fromkeys(self.ids, Address("", 0)), Secret(b"known to all"), tls)
        local = EmbeddedStore(self._place / str(identity))
        broker = Replication(static, local, ScenePeers(self, identity), self._settings, self.clock)
        self.brokers[identity], self.stores[identity] = broker, ReplicatedStore(broker)
        return broker

    async def stop(self, identity: int) -> None:
        """The broker is gone."""
        del self.stores[identity]
        await self.brokers.pop(identity).close()

    def isolate(self, identity: int) -> None:
        """Nobody reaches this broker, and it reaches nobody."""
        self.cut = {frozenset((identity, other)) for other in self.ids if other != identity}

    async def create(self, topic: str = "orders", replicas: Sequence[int] = (1, 2, 3), **configs: Any) -> str:
        """A topic of one partition; returns its log. A setting's dots are written as underscores."""
        own = {name.replace("_", "."): str(value) for name, value in configs.items()}
        document = Document(topic.encode().ljust(16, b"\0"), 1, own, replicas=[list(replicas)])
        assert await self.stores[replicas[0]].save(f"topics/{topic}", document.pack(), None)
        log = f"{topic}:0"
        for identity in replicas:
            if identity in self.brokers:
                await self.until(lambda identity=identity: log in self.brokers[identity].replicas.logs)
        return log

    async def acquire(self, log: str, identity: int) -> int:
        """Lead a log; returns the epoch."""
        return (await self.stores[identity].acquire(log, WHOLE, epoch=0, floor=0)).epoch

    async def appoint(self, log: str, identity: int, *, unclean: bool = False, patience: float = PATIENCE) -> str:
        """Have this broker lead; why not, or "". A busy machine may have taken it out of sync: then it comes back."""
        appoint, until = self.brokers[identity].replicas.appoint, self.clock.monotonic() + patience
        while "is not in sync" in (why := await appoint(log, identity, unclean=unclean, until=until)):
            if self.clock.monotonic() > until:
                break
            await asyncio.sleep(0.01)
        if not why:
            await self.until(lambda: self.brokers[identity].replicas.find_leader(log) == identity)
            await self.acquire(log, identity)
        return why

    async def appoint_metadata(self, identity: int, *, unclean: bool = False) -> None:
        """Have this broker lead the metadata log; all who can know of it."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while (why := await self.brokers[identity].election.become_leader(unclean=unclean)) != "":
            assert asyncio.get_running_loop().time() < deadline, why
            await asyncio.sleep(0.01)  # it is still copying

    async def copy_metadata(self) -> None:
        """Wait until all brokers have the whole metadata log, and know it: after that any of them can lead it."""
        await self.until(lambda: len({broker.election.position for broker in self.brokers.values()}) == 1)
        await self.until(lambda: not any(broker.metadata_replica.is_new for broker in self.brokers.values()))

    def append(
        self, log: str, identity: int, count: int = 1, *, limits: SegmentLimits = LARGE
    ) -> "asyncio.Future[None]":
        """Append a batch; the future ends when it is safe."""
        replica = self.replica(log, identity)
        assert replica.progress is not None
        batch = make_record_batch(replica.end, count)
        batch.data[12:16] = replica.progress.epoch.to_bytes(4, "big")
        opened = self.stores[identity].open_log(log)
        return opened.append([batch], replica.end, sync=True, segment_limits=limits).durable

    async def diverge(self, log: str) -> "asyncio.Future[None]":
        """The leader 1 appends 2 records, is cut off, and appends 5 that nobody else has; 2 leads, and appends 3.

        Returns the future of the five.
        """
        await self.append(log, 1, 2)
        await self.appoint_metadata(2)
        await self.isr(log, 1, 1, 2, 3)
        self.isolate(1)
        lost = self.append(log, 1, 5)
        assert await self.appoint(log, 2) == ""
        await self.append(log, 2, 3)
        return lost

    def replica(self, log: str, identity: int) -> Replica:
        return self.brokers[identity].replicas.logs[log]

    async def read(self, log: str, identity: int) -> list[int]:
        """The offsets that a broker's own copy has."""
        return await read_all(self.brokers[identity].local, log)

    async def until(self, rule: Callable[[], object]) -> None:
        """Wait until it holds."""
        async with asyncio.timeout(PATIENCE):
            while not rule():
                await asyncio.sleep(0.01)

    async def isr(self, log: str, identity: int, *members: int) -> None:
        """Wait until this broker knows that these are in sync."""
        state = self.brokers[identity].replicas.find_state

        def settled() -> bool:
            found = state(log)
            return found is not None and found.isr == members

        await self.until(settled)


@asynccontextmanager
async def open_brokers(
    scene: ReplicatedScene, monkeypatch: pytest.MonkeyPatch, *settings: str
) -> AsyncIterator[dict[int, Broker]]:
    """A whole broker over each store of a scene; their links are mended before they are closed."""
    for identity in scene.ids:
        scene.make(identity)
    brokers = {
        identity: Broker(
            scene.stores[identity], read_settings([f"node.id={identity}", *settings]), replication=replication
        )
        for identity, replication in scene.brokers.items()
    }
    await asyncio.gather(*(broker.open() for broker in brokers.values()))
    try:
        yield brokers
    finally:
        scene.cut.clear()
        with monkeypatch.context() as closing:
            for module in (metadata_log, registry):
                closing.setattr(module, "_PATIENCE", 0.1)  # most brokers are gone before the last one
            await asyncio.gather(*(broker.close() for broker in brokers.values()))
