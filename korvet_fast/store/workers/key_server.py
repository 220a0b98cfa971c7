"""The worker that has the registry: it answers the questions of the others, and its own."""

import asyncio
import logging
import os
import secrets
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.registry import Registry, area_of
from korvet_fast.store.types import CompareAndSet
from korvet_fast.store.workers.connection import Connection, ConnectionEnded
from korvet_fast.store.workers.messages import Fields, Verb, check_size

SOCKET: Final = "registry"  # the name of the Unix socket
_LAST_ANSWERS = 10.0  # seconds for what is being done when this worker closes: the disk may stand still
_FAREWELL = 2.0  # seconds that another worker has to close a connection that is at its end

_logger = logging.getLogger(__name__)


class KeyServer:
    """The keys of `registry`, for this worker (the methods) and for the others (the Unix socket in `directory`).

    `release` makes this worker, which has `number`, give up a log.
    """

    def __init__(
        self, directory: Path, registry: Registry, number: int, release: Callable[[str], Awaitable[None]]
    ) -> None:
        self.registry = registry
        self._directory = directory
        self._number = number
        self._release = release
        self._workers: dict[int, Connection] = {}
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        self._socket: os.stat_result
        self._closing = False
        self._first = secrets.randbits(48) << 14  # other versions than another server's
        self._changes: Counter[str] = Counter()

    async def open(self) -> None:
        """Listen. Raises `StoreError` where the socket cannot be made, and `OSError`."""
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            (self._directory / SOCKET).unlink(missing_ok=True)  # of a worker that is gone: only this one serves now
        except OSError as error:
            in_the_way = isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError)
            advice = "; move away what lies there" if in_the_way else ""
            raise StoreError(
                f"{error.filename}, where workers talk, cannot be made: {error.strerror}{advice}"
            ) from error
        with reachable(self._directory) as path:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            try:
                listening.bind(str(path))
                self._socket = path.stat()
                self._server = await asyncio.start_unix_server(self._accept, sock=listening)
            except OSError as error:
                listening.close()
                raise StoreError(
                    f"{self._directory / SOCKET}, the Unix socket by which workers talk, cannot be made: "
                    f"{error.strerror}; a file system without such sockets is for --workers 1"
                ) from error
            except BaseException:
                listening.close()
                raise

    async def reopen_if_deleted(self) -> None:
        """Listen at a new socket where somebody has deleted this one: no worker could connect. Raises as `open`."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if os.path.samestat((self._directory / SOCKET).stat(), self._socket):
                return
        before = self._server
        await self.open()
        if before is not None:
            before.close()  # its connections go on
        _logger.error(
            "%s was deleted and is made anew: delete nothing in the data directory while a broker runs",
            self._directory / SOCKET,
        )

    async def close(self) -> None:
        """Answer what is being done, tell the others that the rest is not, and end."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*(connection.finish(_LAST_ANSWERS) for connection in self._connections))
        if self._connections:
            await asyncio.wait(self._connections.values(), timeout=_FAREWELL)
        for connection in list(self._connections):
            connection.close()  # of a worker that stands still

    def abort(self) -> None:
        """End as the death of the process would."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0

        async def answer(verb: Verb, fields: Fields) -> Fields:
            nonlocal number
            if verb is Verb.HELLO:
                number = int(_text(fields, 0))
                self._workers[number] = connection
                return []
            return await self.answer(verb, fields)

        connection = Connection(reader, writer, answer)
        task = asyncio.current_task()
        assert task is not None, "asyncio runs this as a task"
        self._connections[connection] = task
        if self._closing:
            connection.close()  # it was accepted a moment ago: nothing has been asked yet but who has the registry
        try:
            await connection.run()
        finally:
            del self._connections[connection]
            if self._workers.get(number) is connection:
                del self._workers[number]

    async def answer(self, verb: Verb, fields: Fields) -> Fields:
        """Answer a question. Raises `StoreError`, or `ValueError` for a question that is none."""
        if verb is Verb.LOAD:
            return [self.registry.load(_text(fields, 0))]
        if verb is Verb.SCAN:
            return [
                each for key, value in self.registry.scan(_text(fields, 0)).items() for each in (key.encode(), value)
            ]
        if verb is Verb.VERSION:
            return [b"%d" % self.version(_text(fields, 0))]
        if verb is Verb.SAVE:
            changes = [
                CompareAndSet(_text(fields, at), fields[at + 1], fields[at + 2]) for at in range(0, len(fields) - 2, 3)
            ]
            return [b"1" if changes and await self.save(*changes) else b""]
        if verb is Verb.RELEASE:
            await self.release(int(_text(fields, 0)), _text(fields, 1))
            return []
        raise ValueError(f"{verb.name} is no question")

    async def save(self, *changes: CompareAndSet) -> bool:
        """As `KeyStore.save`, of these. Raises `StoreError` too if they are more than another worker could ask for."""
        first, *others = changes
        try:
            check_size(pack_changes(changes))
        except ValueError as error:
            raise StoreError(f"the registry cannot keep it: {error}") from None
        if not await self.registry.save(*first, *others):
            return False
        self._changes[area_of(first.key)] += 1
        return True

    def version(self, prefix: str) -> int:
        """See `SharedStore.version`."""
        return self._first + self._changes[area_of(prefix)]

    async def release(self, owner: int, log: str) -> None:
        """Have the worker with this number give up a log; nothing happens if it cannot be asked.

        Raises `StoreError`.
        """
        if owner == self._number:
            await self._release(log)
        elif (connection := self._workers.get(owner)) is not None:
            try:
                await connection.ask(Verb.RELEASE, log.encode())
            except ConnectionEnded:
                return  # it has ended: whoever wants the log finds that out


def pack_changes(changes: Sequence[CompareAndSet]) -> Fields:
    """The fields of `Verb.SAVE`."""
    return [field for each in changes for field in (each.key.encode(), each.value, each.expected)]


def _text(fields: Fields, at: int) -> str:
    value = fields[at] if at < len(fields) else None
    if value is None:
        raise ValueError(f"field {at} is missing")
    return value.decode()


@contextmanager
def reachable(directory: Path) -> Iterator[Path]:
    """The path of the socket in `directory`, short enough: a Unix socket's path may have 107 bytes only."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)
