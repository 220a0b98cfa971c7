"""The text protocol's floor: a uvloop protocol that reads a line at a time and answers it, in Python.

It stores nothing. PRODUCE is taken apart and given the next offset; CONSUME formats 500 messages that lie there ready.
Nothing is checked.
"""

import asyncio
import sys
from typing import cast

import uvloop

MESSAGES = [(offset, "x" * 80) for offset in range(500)]


class Answers(asyncio.Protocol):
    """One connection; the end offset is shared by all."""

    end = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self.received = b""

    def data_received(self, data: bytes) -> None:
        *lines, self.received = (self.received + data).split(b"\n")
        if lines:
            self.transport.write(b"".join([self.answer(line.decode()) for line in lines]))

    def answer(self, line: str) -> bytes:
        """The answer to one line."""
        version, identity, command, arguments = line.split("|", 3)
        if command == "PRODUCE":
            _topic, _, message = arguments.partition(" ")
            _key, _, _value = message.partition(":")
            offset = Answers.end
            Answers.end = offset + 1
            return f"{version}|{identity}|OK|partition=0 offset={offset} hw={offset + 1}\n".encode()
        if command == "CONSUME":
            messages = ",".join([f"{offset}:{value}" for offset, value in MESSAGES])
            return f"{version}|{identity}|OK|messages={messages} hw={len(MESSAGES)}\n".encode()
        return f"{version}|{identity}|OK|pong\n".encode()


async def serve(port: int) -> None:
    """Until killed."""
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
