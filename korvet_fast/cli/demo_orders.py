"""The records of `demo-cluster`: sent while brokers come and go, and read back."""

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import click

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import Consumer, find_offset
from korvet_fast.client.producer import AsyncProducer, Delivery
from korvet_fast.endpoint import Address
from korvet_fast.types import LATEST

TOPIC = "orders"
_PAUSE = 0.002  # seconds between two records


class Orders:
    """`async with` sends `order 0`, `order 1`, … until its end. `acknowledged`: so many, from the first on."""

    def __init__(self, brokers: Sequence[Address], patience: float = 60.0) -> None:
        """`patience`: seconds in which a record has to be acknowledged."""
        self.acknowledged = 0
        self._producer = AsyncProducer(brokers, acks="all", delivery_timeout_ms=patience * 1000)
        self._sent = 0
        self._waiting: deque[Delivery] = deque()
        self._enough = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._send())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._enough.set()
        if error is not None:
            self._task.cancel()
        await asyncio.wait([self._task])
        if error is None:
            self._task.result()

    async def _send(self) -> None:
        """Raises `DeliveryFailed`."""
        async with self._producer as producer:
            while not self._enough.is_set():
                self._waiting.append(producer.send(TOPIC, _order(self._sent)))
                self._sent += 1
                self._note()
                await asyncio.sleep(_PAUSE)
            await producer.flush()
            self._note()

    def _note(self) -> None:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft().result()
            self.acknowledged += 1

    async def wait_for(self, more: int) -> None:
        """Until so many more are acknowledged. Raises `DeliveryFailed`."""
        wanted = self.acknowledged + more
        while self.acknowledged < wanted:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(_PAUSE)

    async def check(self, cluster: Cluster, acknowledged: int) -> None:
        """Read everything, and compare. Raises `ClientError` where it cannot be read, and `ClickException`."""
        await cluster.metadata([TOPIC])
        end = await find_offset(cluster, TOPIC, 0, LATEST)
        found: list[bytes | None] = []
        async for records in Consumer(cluster, TOPIC, {0: 0}).poll():
            found += [record.value for record in records]
            if len(found) >= end:
                break
        if len(found) < acknowledged or any(value != _order(number) for number, value in enumerate(found)):
            raise click.ClickException(f"{acknowledged:,} records were acknowledged, and these are not what is there")


def _order(number: int) -> bytes:
    return b"order %d" % number
