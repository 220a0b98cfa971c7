"""The broker behind the wire: topics, producer ids and the work in the background, over one store."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from korvet_fast.config import Settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.claims import Claims
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.cluster.leadership import Leadership
from korvet_fast.core.groups.coordinator import Coordinator
from korvet_fast.core.host import Host, Loss
from korvet_fast.core.identity import Identity
from korvet_fast.core.partition import Partition
from korvet_fast.core.producer_ids import ProducerIds
from korvet_fast.core.topic import Topic
from korvet_fast.core.topic_config import check_store
from korvet_fast.core.topics import Topics
from korvet_fast.core.types import Address
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

_TEND = 1.0  # seconds between two attempts at what failed
_PATIENCE = 5.0  # seconds that work in the background has to end in when the broker stops
_SOON = 0.02  # seconds between two looks at whether the others have taken over
_AT_ONCE = 64  # logs taken over side by side
_ROOM = 1000  # leader epochs left out when the server's history broke


class Broker:
    """`open`, then use, then `leave` and `close`. Raises `SettingError` for settings that contradict each other."""

    def __init__(self, store: Store, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self._host = Host(store, clock or Clock())
        self._identity = Identity(store)
        self.cluster = Cluster(self._host, settings, self._follow_soon)
        self._host.look = self.cluster.look_soon
        self._claims = Claims(self._host)
        self._leadership = Leadership(self.cluster, self._claims)
        self.topics = Topics(self._host, settings, self._leadership.settle)
        self.groups = Coordinator(self._host, settings, self.cluster, self.topics)
        self._following: asyncio.Task[None] | None = None
        self._unsettled = False
        self._behind = False  # something was seen that is still to be followed
        self._producer_ids = ProducerIds(self._host)
        self._restored = 0  # `Host.forks`, as of the last time that the registry was told what it forgot
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
            await self._be_followed()
            await self.groups.open()
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
        clock, handing = self._host.clock, self._host.start(self._hand_over())
        until = clock.monotonic() + self.settings.number("broker.session.timeout.ms") / 1000
        while not handing.done() and self.cluster.holds() and clock.monotonic() < until:
            await clock.sleep(_SOON)
        for partition in self._find_led():
            partition.resign("this broker is stopping")

    async def _hand_over(self) -> None:
        try:
            await self.topics.refresh()  # nothing is to be saved of what was deleted
            await self.topics.save()  # who takes over has little to read then
            await self.cluster.leave()
            while self._find_led() and not self.cluster.alone:
                await self._host.clock.sleep(_SOON)
        except StoreError as error:
            logger.warning("the other brokers have to find out that this one stops: %s", error.detail)

    def _find_led(self) -> list[Partition]:
        return [partition for topic in self.topics for partition in topic.partitions if partition.led]

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
        self.groups.close()
        await self.cluster.close()
        # A server that does not answer is not waited for as long as those who still try it may wait.
        ending = asyncio.ensure_future(self._host.settle())
        await asyncio.wait([ending], timeout=_PATIENCE if self._host.store.shared else None)
        try:
            if self.cluster.holds():
                await self.topics.save()
            await self._identity.end()
        finally:
            await self._host.store.close()

    def now(self) -> int:
        """Milliseconds since 1970, as `Partition.append` asks for them."""
        return self._host.clock.wall()

    def find_led(self, topic: str) -> Topic | None:
        """A topic of which those partitions with `led` are led here; None if there is no such topic.

        For those who look for many partitions. What is not found so, `partition` explains.
        """
        return self.topics.get(topic) if self._leadership.valid else None

    def partition(self, topic: str, index: int) -> Partition:
        """A partition that this broker leads.

        Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
        """
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            self.cluster.look_soon()  # another broker may have made it
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {index} of topic {topic!r}")
        partition = found.partitions[index]
        if not partition.led or not self._leadership.valid:
            self.cluster.look_soon()
            raise KorvetError("NOT_LEADER_OR_FOLLOWER", f"{partition.log} is not led here")
        return partition

    def find_leader(self, topic: Topic, index: int) -> tuple[int, int]:
        """The id of the broker that leads a partition, and its leader epoch; -1 for both while nobody does."""
        partition = topic.partitions[index]
        epoch, broker = self._claims.find(topic.id, index)
        if partition.led and self._leadership.valid and partition.leader_epoch > epoch:
            return self.node_id, partition.leader_epoch
        return broker, epoch

    async def new_producer(self) -> tuple[int, int]:
        """A producer id never given out before, and its epoch 0."""
        return await self._producer_ids.next(), 0

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
        """Tell the others what is led here, and try again what failed."""
        await self._restore()
        await self._tell()
        await self._recover()

    def _follow_soon(self, changed: bool) -> None:
        """See what the other brokers do, in the background; `changed`: there are others now than before."""
        self._unsettled = self._unsettled or changed
        self._behind = True
        if self._following is None or self._following.done():
            self._following = self._host.start(self._catch_up())

    async def _catch_up(self) -> None:
        """Follow, and once more if something was seen meanwhile: what was followed may have been older."""
        self._behind = False
        await self._follow()
        if self._behind:
            self._following = self._host.start(self._catch_up())

    async def _be_followed(self) -> None:
        """Until what was seen by now has been followed, however fast the next is seen."""
        for _ in range(2 if self._behind else 1):
            if self._following is not None:
                await asyncio.wait([self._following])

    async def _follow(self) -> None:
        """Follow what the other brokers do to topics, and take over what falls to this one."""
        self._unsettled = self._leadership.renounce(self.topics) or self._unsettled
        try:
            await self.topics.refresh()
            others = [member.id for member in self.cluster.members if member.id != self.node_id]
            if await self._claims.refresh(others) or self._unsettled:
                self._unsettled = False
                await self._leadership.settle(self.topics)
            await self.groups.settle()
        except StoreError as error:
            self._unsettled = True
            logger.warning("the other brokers' work cannot be seen: %s", error.detail)
        await self._tell()

    async def _tell(self) -> None:
        if not self.cluster.holds():
            return  # another broker may have our id by now
        try:
            await self._claims.tell(self.node_id, self.topics)
        except StoreError as error:
            logger.warning("the other brokers cannot be told what is led here: %s", error.detail)

    def _fork(self, why: str) -> None:
        """The server's history broke: take over anew what is led here, all of it before anything else is appended."""
        logger.error("%s", why)
        self._host.forks += 1
        led = self._find_led()
        # The server may have forgotten the last epochs, and where the old history lives on, brokers may still get some.
        known = max((partition.leader_epoch for partition in led), default=-1)
        self._host.epoch = _ROOM + max(self._host.epoch, known, self._claims.highest)
        for partition in led:
            partition.fork(why)
        self._host.returning = self._host.start(self._return())
        self._host.start(self._recover())

    async def _return(self) -> None:
        """Find out what is still ours: in this history, others may have taken over, or have never heard of us."""
        await self._restore()
        await self.cluster.tend()
        await self._be_followed()

    async def _restore(self) -> None:
        """Tell the registry again what it forgot with a history that broke."""
        forks = self._host.forks
        if forks != self._restored:
            try:
                await self._identity.restore()
                await self._producer_ids.restore()
                await self.topics.refresh()
                self.groups.restore()
            except StoreError as error:
                logger.warning("the registry cannot be told yet what it forgot: %s", error.detail)
            else:
                self._restored = forks

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
