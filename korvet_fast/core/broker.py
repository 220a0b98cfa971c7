"""The broker behind the wire: topics, producer ids and the work in the background, over one store."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from korvet_fast.config import Settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.leadership import Leadership
from korvet_fast.core.host import Host, Loss
from korvet_fast.core.identity import Identity
from korvet_fast.core.partition import Partition
from korvet_fast.core.topic_config import check_store
from korvet_fast.core.topics import Topics
from korvet_fast.core.types import Address
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

_PRODUCERS = "producers"  # registry key: the first producer id not given out
_BLOCK = 1000  # producer ids taken from the registry at a time
_TEND = 1.0  # seconds between two looks at what other brokers changed, and at what is in doubt
_AT_ONCE = 64  # logs taken over side by side


class Broker:
    """`open`, then use, then `leave` and `close`. Raises `SettingError` for settings that contradict each other."""

    def __init__(self, store: Store, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self._host = Host(store, clock or Clock())
        self._identity = Identity(store)
        self.cluster = Cluster(self._host, settings, self._settle)
        self._host.look = self.cluster.look_soon
        self._leadership = Leadership(self.cluster)
        self.topics = Topics(self._host, settings, self._leadership.settle)
        self._settling: asyncio.Task[None] | None = None
        self._unsettled = False
        self._free_ids = range(0)
        self._allotting = asyncio.Lock()
        self._stop = asyncio.Event()

    @property
    def node_id(self) -> int:
        return self.cluster.id

    @property
    def cluster_id(self) -> str:
        return self._identity.cluster_id

    @property
    def losses(self) -> Sequence[Loss]:
        """What was lost of what had been stored, as far as this broker noticed since its start, oldest first."""
        return self._host.losses

    async def open(self, addresses: Sequence[Address] = ()) -> None:
        """Open the store and everything in it, and lead what falls to this broker.

        `addresses`: what clients are told to connect to, in the order of the listeners. Raises `StoreError`, or
        `SettingError` if another broker has this one's `node.id`; the store is then closed again.
        """
        host = self._host
        check_store(self.settings, host.store)
        await host.store.open()
        try:
            await self._identity.begin()
            host.epoch = self._identity.epoch
            host.store.listen(self._fork)
            await self.cluster.join(addresses)
            if host.store.shared:
                host.start(self.cluster.run())
            await self.topics.open()
            await self.cluster.serve()
            await self._leadership.settle(self.topics)
        except BaseException:
            await self.cluster.close()
            await host.settle()
            await host.store.close()
            raise
        host.start(self._repeat(self.settings.number("log.retention.check.interval.ms") / 1000, self._clean))
        if host.store.shared:
            host.start(self._repeat(_TEND, self._tend))

    async def leave(self) -> None:
        """Have the other brokers take over what this one leads, and give them the time; then lead nothing any more."""
        if not self._host.store.shared:
            return
        try:
            await self.topics.refresh()  # nothing is to be saved of what was deleted
            await self.topics.save()  # who takes over has little to read then
        except StoreError as error:
            logger.warning("the other brokers have to read what could not be saved: %s", error.detail)
        await self.cluster.leave()
        for topic in self.topics:
            for partition in topic.partitions:
                if partition.led:
                    partition.resign("this broker is stopping")

    def drain(self) -> None:
        """Long polls answer at once from now on."""
        self._host.draining = True
        for topic in self.topics:
            for partition in topic.partitions:
                partition.wake()

    async def close(self) -> None:
        """Save what is only in memory, mark the stop as clean, close the store. Raises `StoreError`."""
        self.drain()
        self._stop.set()
        await self.cluster.close()
        await self._host.settle()
        try:
            await self.topics.save()
            await self._identity.end()
        finally:
            await self._host.store.close()

    def partition(self, topic: str, index: int) -> Partition:
        """A partition that this broker leads.

        Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
        """
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            self.cluster.look_soon()  # another broker may have made it
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {index} of topic {topic!r}")
        partition = found.partitions[index]
        if not partition.led or not self.cluster.holds():
            self.cluster.look_soon()
            raise KorvetError("NOT_LEADER_OR_FOLLOWER", f"{partition.log} is not led here")
        return partition

    async def new_producer(self) -> tuple[int, int]:
        """A producer id never given out before, and its epoch 0."""
        async with self._allotting:
            if not self._free_ids:
                await self._allot()
            first = self._free_ids[0]
            self._free_ids = self._free_ids[1:]
            return first, 0

    async def _allot(self) -> None:
        store = self._host.store
        while True:
            known = await store.load(_PRODUCERS)
            first = int(known or b"0")
            if await store.save(_PRODUCERS, b"%d" % (first + _BLOCK), known):
                self._free_ids = range(first, first + _BLOCK)
                return

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do this so often, until the broker stops."""
        while True:
            try:
                async with asyncio.timeout(seconds):
                    await self._stop.wait()
                return
            except TimeoutError:
                await work()

    async def _clean(self) -> None:
        silence = self.settings.number("producer.id.expiration.ms") / 1000
        await self.retire(self._host.clock.monotonic() - silence)

    async def _tend(self) -> None:
        """Follow what other brokers do to topics, and try again what failed."""
        await self._refresh()
        await self._recover()

    async def _refresh(self) -> None:
        try:
            await self.topics.refresh()
        except StoreError as error:
            logger.warning("the topics cannot be looked at: %s", error.detail)

    def _settle(self) -> None:
        """Who leads what may have changed: see to it in the background."""
        self._unsettled = True
        if self._settling is None or self._settling.done():
            self._settling = self._host.start(self._follow())

    async def _follow(self) -> None:
        while self._unsettled:
            self._unsettled = False
            await self._refresh()
            await self._leadership.settle(self.topics)

    def _fork(self, why: str) -> None:
        """The server's history broke: take over anew what is led here, all of it before anything else is appended."""
        logger.error("%s", why)
        for topic in self.topics:
            for partition in topic.partitions:
                partition.fork(why)
        self._host.start(self._recover())

    async def _recover(self) -> None:
        """Ask the store for the end of every log in doubt, a few at a time."""
        rest = iter(list(self._host.doubtful))
        while some := list(islice(rest, _AT_ONCE)):
            await asyncio.wait([partition.retry() for partition in some])

    async def retire(self, producers_before: float) -> None:
        """Delete what retention lets go, and forget producers not heard of since this monotonic time in seconds."""
        for topic in list(self.topics):
            for partition in topic.partitions:
                if not partition.led:
                    continue
                partition.expire_producers(producers_before)
                try:
                    await partition.retire()
                except StoreError as error:
                    logger.error("%s: retention failed: %s", partition.log, error)
            await asyncio.sleep(0)
