"""The broker behind the wire: topics, producer ids, the leader epoch and the cleaning, over one store."""

import asyncio
import json
import logging
import secrets
from typing import NamedTuple

from korvet_fast.config import Settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.host import Host
from korvet_fast.core.partition import Partition
from korvet_fast.core.topics import Topics
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Store

logger = logging.getLogger(__name__)

_SELF = "broker"  # registry key: cluster id, leader epoch, whether the last stop was clean
_PRODUCERS = "producers"  # registry key: the first producer id not given out
_BLOCK = 1000  # producer ids taken from the registry at a time


class Address(NamedTuple):
    """Where a broker listens, or where clients are told to reach it."""

    host: str
    port: int


class Broker:
    """`open`, then use, then `close`."""

    def __init__(self, store: Store, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.node_id = settings.number("node.id")
        self.cluster_id = ""
        self._host = Host(store, clock or Clock())
        self.topics = Topics(self._host, settings)
        self._document: bytes | None = None
        self._free_ids = range(0)
        self._allotting = asyncio.Lock()
        self._stop = asyncio.Event()

    async def open(self) -> None:
        """Open the store and everything in it. Raises `StoreError`; the store is then closed again."""
        await self._host.store.open()
        try:
            await self._begin()
            await self.topics.open()
        except BaseException:
            await self._host.store.close()
            raise
        self._host.start(self._clean())

    async def _begin(self) -> None:
        self._document = await self._host.store.load(_SELF)
        if self._document is None:
            self.cluster_id = secrets.token_urlsafe(16)
        else:
            values = json.loads(self._document)
            self.cluster_id = values["cluster_id"]
            # What was written but not durable may be gone: offsets may be given out again, under a new epoch.
            self._host.epoch = values["epoch"] + (0 if values["clean"] else 1)
        await self._note(clean=False)

    async def _note(self, *, clean: bool) -> None:
        values = {"cluster_id": self.cluster_id, "epoch": self._host.epoch, "clean": clean}
        document = json.dumps(values).encode()
        if not await self._host.store.save(_SELF, document, self._document):
            raise StoreError("another broker uses this store")
        self._document = document

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
        await self._host.settle()
        try:
            await self.topics.save()
            await self._note(clean=True)
        finally:
            await self._host.store.close()

    def partition(self, topic: str, index: int) -> Partition:
        """Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {index} of topic {topic!r}")
        return found.partitions[index]

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

    async def _clean(self) -> None:
        interval = self.settings.number("log.retention.check.interval.ms") / 1000
        silence = self.settings.number("producer.id.expiration.ms") / 1000
        while True:
            try:
                async with asyncio.timeout(interval):
                    await self._stop.wait()
                return
            except TimeoutError:
                await self.retire(self._host.clock.monotonic() - silence)

    async def retire(self, producers_before: float) -> None:
        """Delete what retention lets go, and forget producers not heard of since this monotonic time in seconds."""
        for topic in list(self.topics):
            for partition in topic.partitions:
                partition.expire_producers(producers_before)
                try:
                    await partition.retire()
                except StoreError as error:
                    logger.error("%s: retention failed: %s", partition.log, error)
            await asyncio.sleep(0)
