"""A broker in the running loop, or in a thread with a loop of its own. Neither touches signals or the process."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from queue import SimpleQueue
from typing import Any

import uvloop

from korvet_fast.cli.store import make_store
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint
from korvet_fast.net.listeners import Listener
from korvet_fast.net.serve import serve_until
from korvet_fast.testing.places import find_place

# What a test wants otherwise than a broker that stays: a group that forms at once, no disk waited for, few descriptors.
SETTINGS: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "durability": "written",
    "max.connections": 500,
}


@asynccontextmanager
async def running_broker(store: str | None = None, settings: Mapping[str, object] | None = None) -> AsyncIterator[str]:
    """Run a broker in the running loop; gives its address, `127.0.0.1:PORT`, and stops the broker at the end.

    `store`: `file:DIRECTORY`, or the URL of a Redis. None: files in a directory that is removed at the end. In a Redis
    without `?namespace=NAME` the keys begin with a name of this broker's own, and are deleted at the end.
    `settings`: by name, over `SETTINGS`. Clients that block the loop wait for themselves: give them `broker_in_thread`.

    Raises `SettingError` for a setting or a store that cannot be, `StoreError` if the store cannot be opened.
    """
    given = {**SETTINGS, **(settings or {})}
    in_force = read_settings((f"{name}={_write(value)}" for name, value in given.items()), flag="settings")
    async with find_place(store) as place:
        opened, check = make_store(place, in_force)
        stop = asyncio.Event()
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def ready(endpoints: list[Endpoint]) -> None:
            check()
            address.set_result(str(endpoints[0].address))

        listeners = [Listener(Endpoint("kafka", "127.0.0.1", 0))]
        serving = asyncio.ensure_future(serve_until(stop, Broker(opened, in_force), listeners, ready))
        try:
            first: list[asyncio.Future[Any]] = [serving, address]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            yield address.result()
        finally:
            stop.set()
            await serving


@contextmanager
def broker_in_thread(store: str | None = None, settings: Mapping[str, object] | None = None) -> Iterator[str]:
    """Run a broker on a thread, for tests without a loop and for clients that block; otherwise as `running_broker`."""
    started: SimpleQueue[tuple[str, asyncio.AbstractEventLoop, asyncio.Event] | None] = SimpleQueue()

    async def serve() -> None:
        stop = asyncio.Event()
        try:
            async with running_broker(store, settings) as address:
                started.put((address, asyncio.get_running_loop(), stop))
                await stop.wait()
        finally:
            started.put(None)

    with ThreadPoolExecutor(1, "korvet") as threads:
        serving = threads.submit(lambda: uvloop.run(serve()))
        running = started.get()
        if running is None:
            serving.result()
            raise AssertionError("a broker that did not start says why")
        address, loop, stop = running
        try:
            yield address
        finally:
            if not serving.done():
                loop.call_soon_threadsafe(stop.set)
            serving.result()


def _write(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
