"""Sends lines to one topic, several columns of them at a time, in order and no faster than a rate."""

import asyncio

from korvet_fast.client.producer import AsyncProducer
from korvet_fast.client.producer.rows import RowsFailed

IN_FLIGHT = 8  # columns that are not stored yet: as many are in memory, however large the file is
STEPS = 10  # a second: so often lines are sent that have a rate


class LineSender:
    """`send` lines, then `finish`. `stored` counts those that are acknowledged. `rate`: lines a second, None: any."""

    def __init__(
        self, producer: AsyncProducer, topic: str, partition: int | None, key: bytes | None, rate: float | None
    ) -> None:
        self.stored = 0
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._key = key
        self._rate = rate
        self._next = 0.0  # on the loop's clock: when the rate allows the next line
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def send(self, lines: list[bytes]) -> None:
        """Send lines; waits while too many are not stored. Raises `DeliveryFailed` if an earlier one failed."""
        most = len(lines) if self._rate is None else max(1, int(self._rate / STEPS))
        for start in range(0, len(lines), most):
            part = lines[start : start + most]
            if self._rate is not None:
                await self._pace(len(part) / self._rate)
            await self._room.acquire()
            if self._failure is not None:
                self._room.release()
                await self.finish()
            task = asyncio.create_task(self._send(part))
            task.add_done_callback(self._finish_one)
            self._tasks.add(task)

    async def finish(self) -> None:
        """Wait until every line has ended. Raises `DeliveryFailed` if any failed; then `stored` is final."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._failure is not None:
            raise self._failure

    async def _pace(self, seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        begin = max(now, self._next)
        self._next = begin + seconds
        await asyncio.sleep(begin - now)

    async def _send(self, lines: list[bytes]) -> None:
        keys = None if self._key is None else [self._key] * len(lines)
        try:
            await self._producer.send_many(self._topic, keys, lines, partition=self._partition)
        except RowsFailed as error:
            self.stored += len(lines) - len(error.failures)
            raise error.failures[min(error.failures)] from None
        self.stored += len(lines)

    def _finish_one(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()
        failure = None if task.cancelled() else task.exception()
        self._failure = self._failure or failure
