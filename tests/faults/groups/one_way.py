"""A network between members and a broker of which one direction can be closed while the other stays open."""

import asyncio
import threading
from collections.abc import Callable
from typing import Literal

from faults.proxy import Fault, start_proxy

Direction = Literal["requests", "answers"]


class OneWay:
    """Listens on `port`, in a thread of its own, and passes everything to the port `target` until told otherwise."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def hold(self, direction: Direction) -> None:
        """From now on nothing passes this way, and no connection ends."""
        self._tell(self._open[direction].clear)

    def release(self) -> None:
        """Everything passes again, first what was held: also of connections that the client has given up."""
        self._tell(*(each.set for each in self._open.values()))

    def _tell(self, *works: Callable[[], None]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: [work() for work in (*works, done.set)])
        assert done.wait(60)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._open: dict[Direction, asyncio.Event] = {"requests": asyncio.Event(), "answers": asyncio.Event()}
        for each in self._open.values():
            each.set()
        fault = Fault(answers=self._open["answers"], requests=self._open["requests"])
        async with start_proxy(self.target, lambda _: fault, self.port):
            self._ready.set()
            await self._end.wait()

    def __enter__(self) -> "OneWay":
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._tell(self._end.set)
        self._thread.join(10)
