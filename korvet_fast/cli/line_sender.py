"""Sends lines to one topic, several columns of them at a time, in order and no faster than a rate."""

import asyncio
from typing import NamedTuple

from korvet_fast.cli.line_format import read_json, split_keys
from korvet_fast.client.producer import AsyncProducer, DeliveryFailed, Message
from korvet_fast.client.producer.message import Headers
from korvet_fast.client.producer.rows import RowsFailed

IN_FLIGHT = 8  # columns that are not stored yet: as many are in memory, however large the file is
STEPS = 10  # a second: so often lines are sent that have a rate


class Lines(NamedTuple):
    """What becomes of lines. `key_separator` None: there is no key in them."""

    topic: str
    partition: int | None = None
    key: bytes | None = None
    headers: Headers = ()
    key_separator: bytes | None = None
    json: bool = False
    rate: float | None = None  # lines a second; None: any


class LineSender:
    """`send` lines, then `finish`. `stored` counts the records that are acknowledged."""

    def __init__(self, producer: AsyncProducer, lines: Lines) -> None:
        self.stored = 0
        self._producer = producer
        self._lines = lines
        self._number = 1  # of the next line
        self._next = 0.0  # on the loop's clock: when the rate allows the next line
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._turn = asyncio.Lock()  # messages keep their order
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def send(self, lines: list[bytes]) -> None:
        """Send lines; waits while too many are not stored. Raises `ClientError` if an earlier one failed."""
        rate = self._lines.rate
        most = len(lines) if rate is None else max(1, int(rate / STEPS))
        for start in range(0, len(lines), most):
            part = lines[start : start + most]
            if rate is not None:
                await self._pace(len(part) / rate)
            await self._room.acquire()
            if self._failure is not None:
                self._room.release()
                await self.finish()
            task = asyncio.create_task(self._send(part, self._number))
            self._number += len(part)
            task.add_done_callback(self._finish_one)
            self._tasks.add(task)

    async def finish(self) -> None:
        """Wait until every line has ended. Raises `ClientError` if any failed; then `stored` is final."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._failure is not None:
            raise self._failure

    async def _pace(self, seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        begin = max(now, self._next)
        self._next = begin + seconds
        await asyncio.sleep(begin - now)

    async def _send(self, lines: list[bytes], first: int) -> None:
        """Send lines, of which `first` is the number of the first, as columns where no record has headers."""
        if self._lines.json or self._lines.headers:
            await self._send_messages(self._make_messages(lines, first))
            return
        keys, values = self._split(lines, first)
        try:
            await self._producer.send_many(self._lines.topic, keys, values, partition=self._lines.partition)
        except RowsFailed as error:
            self.stored += len(lines) - len(error.failures)
            raise error.failures[min(error.failures)] from None
        self.stored += len(lines)

    def _split(self, lines: list[bytes], first: int) -> tuple[list[bytes] | None, list[bytes]]:
        """Keys, None if no record has one, and values."""
        if self._lines.key_separator is not None:
            return split_keys(lines, self._lines.key_separator, first)
        return None if self._lines.key is None else [self._lines.key] * len(lines), lines

    def _make_messages(self, lines: list[bytes], first: int) -> list[Message]:
        wanted = self._lines
        if wanted.json:
            read = [read_json(wanted.topic, line, number) for number, line in enumerate(lines, first) if line.strip()]
            return [
                message._replace(
                    headers=(*message.headers, *wanted.headers),
                    partition=message.partition if wanted.partition is None else wanted.partition,
                )
                for message in read
            ]
        keys, values = self._split(lines, first)
        cells: list[bytes] | list[None] = keys if keys is not None else [None] * len(values)
        pairs = zip(cells, values, strict=True)
        return [Message(wanted.topic, value, key, wanted.headers, wanted.partition) for key, value in pairs]

    async def _send_messages(self, messages: list[Message]) -> None:
        async with self._turn:
            deliveries = [await self._producer.send_when_room(message) for message in messages]
        failures = []
        for delivery in deliveries:
            try:
                await delivery
            except DeliveryFailed as error:
                failures.append(error)
            else:
                self.stored += 1
        if failures:
            raise failures[0]

    def _finish_one(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()
        failure = None if task.cancelled() else task.exception()
        self._failure = self._failure or failure
