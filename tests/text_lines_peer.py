"""A text broker that a test scripts: how each PRODUCE line is answered, and when the connection ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

CLOSE = b""

# The line, and how many came before it -> the answer; CLOSE: the connection ends; None: nothing, ever.
Answer = Callable[[bytes, int], bytes | None]


def stored(line: bytes, number: int) -> bytes:
    return b"V1|%b|OK|partition=0 offset=%d hw=%d\n" % (line.split(b"|")[1], number, number + 1)


def refused(line: bytes, code: bytes) -> bytes:
    return b"V1|%b|ERR|%b|a sentence\n" % (line.split(b"|")[1], code)


class ScriptedTextBroker:
    """`lines`: all that came. `connections`: how many there were."""

    def __init__(self, answer: Answer = stored) -> None:
        self.answer = answer
        self.lines: list[bytes] = []
        self.connections = 0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[str]:
        writers: set[asyncio.StreamWriter] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.add(writer)
            self.connections += 1
            try:
                while line := await reader.readline():
                    answer = self.answer(line, len(self.lines))
                    self.lines.append(line)
                    if answer == CLOSE:
                        await writer.drain()
                        break
                    if answer is not None:
                        writer.write(answer)
            except ConnectionError:
                pass  # the client has gone
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield f"text://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for writer in writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            await server.wait_closed()
