"""A TCP proxy that passes a Kafka conversation on untouched and writes down every request with its answer."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

PREFIX = 4


@dataclass(slots=True)
class Exchange:
    """A request, and its answer if one came. Frames without their length prefix."""

    request: bytes
    response: bytes | None = None


class RecordingProxy:
    """`with RecordingProxy(port, broker_port) as proxy:` listens on `port`, in a thread of its own."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        self.broker_port = broker_port
        self._exchanges: list[Exchange] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def take(self) -> list[Exchange]:
        """The exchanges since the last call, in the order of the requests."""
        taken, self._exchanges = self._exchanges, []
        return taken

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _end(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self.broker_port)
        self._writers += [writer, broker_writer]
        waiting: dict[bytes, Exchange] = {}  # by correlation id

        def ask(frame: bytes) -> None:
            waiting[frame[4:8]] = exchange = Exchange(frame)
            self._exchanges.append(exchange)

        def answer(frame: bytes) -> None:
            waiting.pop(frame[:4]).response = frame

        await asyncio.gather(_pass_on(reader, broker_writer, ask), _pass_on(broker_reader, writer, answer))


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, see: Callable[[bytes], None]) -> None:
    """Frames from one side to the other until one of them goes away, each seen before it is sent."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            prefix = await source.readexactly(PREFIX)
            frame = await source.readexactly(int.from_bytes(prefix, "big"))
            see(frame)
            sink.write(prefix + frame)
            await sink.drain()
    sink.close()
