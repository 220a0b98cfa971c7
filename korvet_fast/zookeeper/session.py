"""kazoo for asyncio: its calls as awaitables, and what becomes of its session as calls on the event loop.

kazoo works in threads of its own. Nothing else of it than this module is used.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import EventType, KazooState, WatchedEvent
from kazoo.retry import KazooRetry

_RETRY = 0.1  # seconds before a lost connection is tried again; it doubles
_LONGEST_RETRY = 2.0

_REMEDIES: Mapping[type[KazooException], str] = {
    NoAuthError: ": let this broker read, create, change and delete it (the ACLs of the node and of the one above)",
    NoChildrenForEphemeralsError: ": a node above is ephemeral and has none below; give --zookeeper another chroot",
}

# kazoo logs every attempt to connect: who uses this says once what matters.
_SILENT = logging.getLogger("korvet_fast.zookeeper.kazoo")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class ZooKeeperError(Exception):
    """ZooKeeper refused a call. The text says why."""


class ConnectionLost(ZooKeeperError):
    """The connection or the session went while a call was under way: it may have been carried out, or not."""


class Node(NamedTuple):
    """A node's value, and the session it lives with (0: it is persistent)."""

    value: bytes
    session: int


class ZooKeeperSession:
    """A session that is connected again when it is lost, and made anew when it has expired.

    `changed` is called on the loop whenever `connected` or `number` changed. `number` grows when a session has expired:
    ZooKeeper has then removed its ephemeral nodes. All calls raise `ZooKeeperError`.
    """

    def __init__(self, hosts: str, timeout_ms: int, changed: Callable[[], None]) -> None:
        handler = SequentialThreadingHandler()
        retry = KazooRetry(max_tries=-1, delay=_RETRY, max_delay=_LONGEST_RETRY, sleep_func=handler.sleep_func)
        seconds = timeout_ms / 1000
        self._client = KazooClient(hosts, seconds, handler=handler, connection_retry=retry, logger=_SILENT)
        self._changed = changed
        self._notice: Callable[[str], None] | None = None
        self.connected = False
        self.number = 0
        self.id = 0  # ZooKeeper's own number of the session, once there was one

    def start(self) -> None:
        """Begin to connect; goes on until `close`."""
        loop = asyncio.get_running_loop()

        def notice(state: str) -> None:  # in a thread of kazoo's
            if state != KazooState.CONNECTED:
                # A ZooKeeper that lost its data would refuse who has seen more than it has, for ever.
                self._client.last_zxid = 0
            known = self._client.client_id if state == KazooState.CONNECTED else None
            loop.call_soon_threadsafe(self._follow, state, known)

        self._notice = notice
        self._client.add_listener(notice)
        self._client.start_async()

    def _follow(self, state: str, known: tuple[int, bytes] | None) -> None:
        self.connected = state == KazooState.CONNECTED
        self.number += state == KazooState.LOST
        if known is not None:
            self.id = known[0]
        self._changed()

    async def close(self) -> None:
        """End the session: its ephemeral nodes go at once, if ZooKeeper can be reached."""
        self._client.remove_listener(self._notice)
        await asyncio.to_thread(self._client.stop)
        self._client.close()

    async def create(self, path: str, value: bytes | None, *, ephemeral: bool) -> bool:
        """Make a node; False if there is one already. `value` None: without data."""
        try:
            await self._call(path, self._client.create_async(path, value, ephemeral=ephemeral), NodeExistsError)
        except NodeExistsError:
            return False
        return True

    async def read(self, path: str) -> Node | None:
        """A node, or None."""
        return await self._read(path, self._client.get_async(path))

    async def _read(self, path: str, result: Any) -> Node | None:
        try:
            value, stat = await self._call(path, result, NoNodeError)
        except NoNodeError:
            return None
        return Node(value or b"", stat.ephemeralOwner)

    async def watch(self, path: str, changed: Callable[[], None]) -> Node | None:
        """A node, or None; `changed` is called on the loop once it was changed or deleted.

        It is not called any more after the connection was lost.
        """
        loop = asyncio.get_running_loop()

        def notice(event: WatchedEvent) -> None:  # in a thread of kazoo's
            if event.type in (EventType.CHANGED, EventType.DELETED):
                loop.call_soon_threadsafe(changed)

        return await self._read(path, self._client.get_async(path, watch=notice))

    async def write(self, path: str, value: bytes) -> None:
        """Change a node's value."""
        await self._call(path, self._client.set_async(path, value))

    async def delete(self, path: str) -> None:
        """Take a node away; it may be gone already."""
        try:
            await self._call(path, self._client.delete_async(path), NoNodeError)
        except NoNodeError:
            return

    async def _call(self, path: str, result: Any, expected: type[KazooException] | None = None) -> Any:
        """The result of a call about a node. Raises the `expected` exception as it is, others as `ZooKeeperError`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not future.done():  # who waited may have been cancelled
                future.set_result(None)

        # kazoo calls back in a thread of its own, and not any more once its client was stopped.
        result.rawlink(lambda _: loop.call_soon_threadsafe(finish))
        await future
        try:
            return result.get_nowait()
        except (ConnectionLoss, ConnectionClosedError, SessionExpiredError) as error:
            raise ConnectionLost(type(error).__name__) from error
        except KazooException as error:
            if expected is not None and isinstance(error, expected):
                raise
            what = f"{type(error).__name__} {error}".rstrip()
            raise ZooKeeperError(f"{what} at {path}{_REMEDIES.get(type(error), '')}") from error
