"""The keys that all workers have in common: one worker has the registry, the others ask it.

Whoever gets byte 0 of the locks opens the registry and serves it. When it ends, however it ends, the kernel frees the
byte, and another worker gets it.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Final

from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.embedded.registry import Registry
from korvet_fast.store.types import CompareAndSet
from korvet_fast.store.workers.connection import Connection, ConnectionEnded
from korvet_fast.store.workers.key_server import SOCKET, KeyServer, pack_changes, reachable
from korvet_fast.store.workers.locks import ByteLocks
from korvet_fast.store.workers.messages import Fields, Verb

REGISTRY: Final = 0  # the byte
PATIENCE: Final = 20.0  # seconds that a question waits for a worker that has the registry
_GREETING = 5.0  # seconds for its first answer: then it is connected to anew
_PAUSE = 0.01  # seconds between two attempts to get the registry, or to reach the worker that has it
_LONGEST = 1.0  # the same after errors
_LOOK = 1.0  # seconds between two looks at whether the socket is still there
_BUFFER = 1 << 20  # bytes read ahead from the socket

_logger = logging.getLogger(__name__)


class WorkerKeys:
    """A `KeyStore` over the workers of a directory; `release` and `version` besides.

    `open_registry`: a context in which this worker has the registry open; it is entered by the worker that serves.
    `give_up` makes this worker, which has `number`, give up a log.
    """

    def __init__(
        self,
        directory: Path,
        number: int,
        locks: ByteLocks,
        open_registry: Callable[[], AbstractAsyncContextManager[Registry]],
        give_up: Callable[[str], Awaitable[None]],
    ) -> None:
        self._directory = directory
        self._number = number
        self._locks = locks
        self._open_registry = open_registry
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self._server: KeyServer | None = None
        self._connection: Connection | None = None
        self._changed = asyncio.Event()  # set when either is there
        self._closing = asyncio.Event()
        self._complaint = ""
        self._unreached = "this worker has not looked for it yet"  # why nobody answers
        self._task = self._loop.create_task(self._run())

    async def open(self) -> None:
        """Wait until keys can be asked for. Raises `StoreError`."""
        await self._wait(self._loop.time() + PATIENCE, despite_complaint=False)

    async def close(self) -> None:
        """Serve no more, and let another worker have the registry."""
        self._closing.set()
        if self._connection is not None:
            self._connection.close()
        await asyncio.wait([self._task])
        self._changed.set()

    def abort(self) -> None:
        """End as the death of the process would: nothing is answered any more."""
        self._closing.set()
        self._task.cancel()
        if self._connection is not None:
            self._connection.close()
        if self._server is not None:
            self._server.abort()
        self._server = self._connection = None
        self._changed.set()

    # -- who has the registry ----------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = _PAUSE
        while not self._closing.is_set():
            try:
                if self._locks.take(REGISTRY):
                    try:
                        await self._serve()
                    finally:
                        self._locks.release(REGISTRY)
                else:
                    await self._attend()
            except Exception as error:  # noqa: BLE001  a bug of ours must not leave this worker without keys
                self._complain(error)
            pause = min(_LONGEST, 2 * pause) if self._complaint else _PAUSE
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._closing.wait()

    async def _serve(self) -> None:
        self._unreached = "this worker has not read it from the disk yet"
        async with self._open_registry() as registry:
            server = KeyServer(self._directory, registry, self._number, self._give_up)
            await server.open()
            self._server = server
            self._complaint = ""
            self._changed.set()
            _logger.info("worker %d serves the registry", self._number)
            try:
                while not await _wait_for_either(self._closing, registry.broken, within=_LOOK):
                    await self._keep_reachable(server)
                if registry.broken.is_set():
                    _logger.error("worker %d gives the registry up: it is read from the disk again", self._number)
                else:
                    await server.close()
            finally:
                server.abort()
                self._server = None
                self._changed.clear()

    async def _keep_reachable(self, server: KeyServer) -> None:
        try:
            await server.reopen_if_deleted()
            self._complaint = ""
        except (OSError, StoreError) as error:  # workers that are connected go on
            self._complain(error)

    async def _attend(self) -> None:
        """Ask the worker that has the registry, until the connection ends. Raises `OSError`."""
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            with reachable(self._directory) as path:
                await self._loop.sock_connect(asking, str(path))
        except OSError as error:  # it has just begun, or just ended
            asking.close()
            self._unreached = f"the worker that has it is not there: {self._directory / SOCKET}: {error.strerror}"
            return
        reader, writer = await asyncio.open_unix_connection(sock=asking, limit=_BUFFER)
        connection = Connection(reader, writer, self._answer)
        running = self._loop.create_task(connection.run())
        try:
            async with asyncio.timeout(_GREETING):
                await connection.ask(Verb.HELLO, b"%d" % self._number)
            self._connection = connection
            self._complaint = ""
            self._changed.set()
            await asyncio.wait([running])
        except ConnectionEnded:
            self._unreached = "the worker that has it ended the connection"
        except TimeoutError:
            self._unreached = f"the worker that has it accepts connections, and answers nothing for {_GREETING:g} s"
        finally:
            self._connection = None
            self._changed.clear()
            connection.close()

    async def _answer(self, verb: Verb, fields: Fields) -> Fields:
        if verb is not Verb.RELEASE or len(fields) != 1 or fields[0] is None:
            raise ValueError(f"{verb.name}: this worker does not have the registry")
        await self._give_up(fields[0].decode())
        return []

    async def _wait(self, deadline: float, *, despite_complaint: bool = True) -> None:
        """Wait until keys can be asked for. Raises `StoreError`."""
        timer = None
        while self._server is None and self._connection is None:
            left = deadline - self._loop.time()
            if left <= 0 or self._closing.is_set() or (self._complaint and not despite_complaint):
                if self._closing.is_set():
                    raise StoreError("this worker is closed")
                raise StoreError(self._complaint or f"the registry cannot be asked: {self._unreached}")
            timer = timer or self._loop.call_later(left, self._changed.set)
            await self._changed.wait()
            if self._server is None and self._connection is None:
                self._changed.clear()
        if timer is not None:
            timer.cancel()

    def _complain(self, error: Exception) -> None:
        bug = None
        match error:
            case StoreError():
                why = error.detail
            case OSError():
                why = str(error)
            case _:
                why, bug = repr(error), error
        if why != self._complaint:
            _logger.error("the registry: %s", why, exc_info=bug)
            self._complaint = why
            self._changed.set()

    # -- questions -----------------------------------------------------------------------------------------------------

    async def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        if self._server is not None:
            return self._server.registry.load(key)
        return (await self._ask(Verb.LOAD, key.encode()))[0]

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`."""
        if self._server is not None:
            return self._server.registry.scan(prefix)
        row = await self._ask(Verb.SCAN, prefix.encode())
        return {(key or b"").decode(): value or b"" for key, value in zip(row[::2], row[1::2], strict=True)}

    async def version(self, prefix: str) -> int:
        """See `SharedStore.version`."""
        if self._server is not None:
            return self._server.version(prefix)
        return int((await self._ask(Verb.VERSION, prefix.encode()))[0] or b"0")

    async def save(self, *changes: CompareAndSet) -> bool:
        """See `KeyStore.save`. Raises `OutcomeUnknown` if the worker that has the registry ended meanwhile."""
        if self._server is not None:
            return await self._server.save(*changes)
        return (await self._ask(Verb.SAVE, *pack_changes(changes)))[0] == b"1"

    async def release(self, owner: int, log: str) -> None:
        """Have the worker with this number give up a log. It may be too early, or too late: read the log's key."""
        if self._server is not None:
            await self._server.release(owner, log)
        else:
            await self._ask(Verb.RELEASE, b"%d" % owner, log.encode())

    async def _ask(self, verb: Verb, *fields: bytes | None) -> Fields:
        deadline = self._loop.time() + PATIENCE
        while True:
            await self._wait(deadline)
            if self._server is not None:
                return await self._server.answer(verb, fields)
            connection = self._connection
            assert connection is not None, "waited for"
            try:
                return await connection.ask(verb, *fields)
            except ConnectionEnded as ended:
                if self._connection is connection:  # the task that reads it may not have noticed yet
                    self._connection = None
                    self._changed.clear()
                if verb is Verb.SAVE and not ended.undone:
                    raise OutcomeUnknown("the worker that has the registry ended before it answered") from None


async def _wait_for_either(*events: asyncio.Event, within: float) -> bool:
    """Whether one of them was set within so many seconds."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waiting, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for each in waiting:
            each.cancel()
