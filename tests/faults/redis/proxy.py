"""A proxy in front of a Redis server that knows where commands and replies begin, in a thread of its own."""

import asyncio
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from faults.redis.resp import Splitter, command_name
from raw_connection import reset
from redis_server import free_port

WHOLE = 1 << 62


@dataclass
class Cut:
    """The fault of the next command of a name: so many bytes of it, or of the reply, pass; then both ends are reset."""

    command: bytes
    of: str  # "request" or "reply"
    passing: int
    done: threading.Event = field(default_factory=threading.Event)


class RedisProxy:
    """Listens on `port` and passes everything to the server on `target`, unless told otherwise.

    `frames` False: bytes are passed as they come (a replica's link speaks no plain RESP).
    """

    def __init__(self, target: int, *, frames: bool = True) -> None:
        self.target = target
        self.frames = frames
        self.port = free_port()
        self.latency = 0.0  # seconds, each way
        self.reset_chance = 0.0  # per command: before it, within it, or after it without the reply
        self.chance = random.Random(0)
        self.accepted = 0
        self.resets = 0
        self.trace: list[bytes] = []  # the names of all commands, as they came
        self.links: set[Link] = set()
        self._accepting = 0  # connections that are no links yet
        self._cuts: list[Cut] = []
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def lose_reply(self, command: bytes) -> threading.Event:
        """The next such command is carried out by the server, and its reply is lost with the connection."""
        return self._add(Cut(command, "reply", 0))

    def cut_reply(self, command: bytes, passing: int) -> threading.Event:
        """As `lose_reply`, but after so many bytes of the reply."""
        return self._add(Cut(command, "reply", passing))

    def cut_request(self, command: bytes, passing: int) -> threading.Event:
        """Let so many bytes of the next such command pass, at most all of them; then reset both sides."""
        return self._add(Cut(command, "request", passing))

    def hold(self) -> int:
        """From now on nothing passes, and no connection ends. Returns how many commands had come by then."""
        come: list[int] = []
        self._tell(lambda: (self._open.clear(), come.append(len(self.trace))))
        return come[0]

    def release(self) -> None:
        """Everything passes again, first what was held: also of connections that the client has given up."""
        self._tell(lambda: self._open.set())

    def reset_all(self) -> None:
        """Reset the connections of the moment."""
        self._tell(lambda: [link.end() for link in list(self.links)])

    def _add(self, cut: Cut) -> threading.Event:
        with self._lock:
            self._cuts.append(cut)
        return cut.done

    def take(self, name: bytes) -> Cut | None:
        """The fault that the command that just came meets."""
        with self._lock:
            found = next((cut for cut in self._cuts if cut.command == name), None)
            if found is not None:
                self._cuts.remove(found)
                return found
        if self.reset_chance and self.chance.random() < self.reset_chance:
            return Cut(name, *self.chance.choice([("request", 0), ("request", 30), ("request", WHOLE), ("reply", 0)]))
        return None

    async def passable(self) -> None:
        await self._open.wait()

    def _tell(self, work: Callable[[], Any]) -> None:
        """Have something done in the proxy's thread, and wait until it is."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (work(), done.set()))
        assert done.wait(60)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self._ready.set()
        await self._end.wait()
        server.close()
        self._open.set()
        while self.links or self._accepting:
            for link in list(self.links):
                link.end()
            await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._accepting += 1
        try:
            ends = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            reset(writer)
            return
        finally:
            self._accepting -= 1
        link = Link(self, (reader, writer), ends)
        self.links.add(link)
        try:
            await link.run()
        finally:
            self.links.discard(link)

    def __enter__(self) -> "RedisProxy":
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._tell(self._end.set)
        self._thread.join(10)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: RedisProxy, client: Ends, server: Ends) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._unanswered: deque[Cut | None] = deque()
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Pass everything until one side ends; then the other one does too."""
        up: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        down: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        works = [
            self._read(self._client[0], up, self._request),
            self._read(self._server[0], down, self._reply),
            self._write(up, self._server[1]),
            self._write(down, self._client[1]),
        ]
        self._tasks = [asyncio.ensure_future(work) for work in works]
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        self.end()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            assert ended is None or isinstance(ended, OSError | asyncio.CancelledError), ended
        reset(self._client[1])
        reset(self._server[1])

    def end(self) -> None:
        """Reset both sides."""
        for task in self._tasks:
            task.cancel()

    async def _read(
        self,
        source: asyncio.StreamReader,
        queue: "asyncio.Queue[tuple[float, bytes]]",
        meet: Callable[[bytes], Cut | None],
    ) -> None:
        splitter = Splitter()
        while data := await source.read(1 << 16):
            for frame in splitter.feed(data) if self._proxy.frames else [data]:
                cut = meet(frame) if self._proxy.frames else None
                piece = frame if cut is None else frame[: cut.passing]
                queue.put_nowait((asyncio.get_running_loop().time() + self._proxy.latency, piece))
                if cut is not None:
                    await queue.join()
                    self._proxy.resets += 1
                    cut.done.set()
                    return
        await queue.join()

    def _request(self, frame: bytes) -> Cut | None:
        name = command_name(frame)
        self._proxy.trace.append(name)
        cut = self._proxy.take(name)
        if cut is not None and cut.of == "request":
            return cut
        self._unanswered.append(cut)
        return None

    def _reply(self, frame: bytes) -> Cut | None:
        if frame.startswith(b">") or not self._unanswered:
            return None  # nobody asked for it: a push
        return self._unanswered.popleft()

    async def _write(self, queue: "asyncio.Queue[tuple[float, bytes]]", target: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, data = await queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            await self._proxy.passable()
            target.write(data)
            await target.drain()
            while target.transport.get_write_buffer_size():
                await asyncio.sleep(0)  # what was let through shall arrive: a reset comes after it
            queue.task_done()
