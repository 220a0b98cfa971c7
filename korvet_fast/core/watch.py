"""Waiting for bytes to become readable: a long poll sleeps here and is woken, it never looks again on its own."""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol


class Watched(Protocol):
    """What a watch needs of a partition."""

    @property
    def watches(self) -> "list[Watch]": ...

    @property
    def single(self) -> bool: ...

    @property
    def draining(self) -> bool: ...

    def readable(self, offset: int) -> int: ...

    def follow(self) -> None: ...


class Watch:
    """`with Watch([(partition, offset), ...], min_bytes) as watch: enough = await watch.wait(seconds)`.

    Registered only inside the `with`. An append tells its partition's watches how much became readable.
    """

    __slots__ = ("_missing", "_partitions", "_waiter")

    def __init__(self, partitions: "Iterable[tuple[Watched, int]]", min_bytes: int) -> None:
        self._partitions: list[Watched] = []
        self._missing = min_bytes
        self._waiter: asyncio.Future[bool] | None = None
        for partition, offset in partitions:
            self._partitions.append(partition)
            self._missing -= partition.readable(offset)

    def __enter__(self) -> "Watch":
        for partition in self._partitions:
            partition.watches.append(self)
            if partition.single:
                partition.follow()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for partition in self._partitions:
            partition.watches.remove(self)

    async def wait(self, seconds: float) -> bool:
        """True as soon as `min_bytes` are readable, or something else is worth a look (deleted, draining); False after
        `seconds`."""
        if self._missing <= 0 or any(partition.draining for partition in self._partitions):
            return True
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._end, False)
        try:
            return await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def tell(self, more: int) -> None:
        """So many bytes more became readable in one of the partitions."""
        self._missing -= more
        if self._missing <= 0:
            self._end(True)

    def wake(self) -> None:
        """Something other than an append happened; the waiter is to look for itself."""
        self._missing = 0
        self._end(True)

    def _end(self, enough: bool) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(enough)
