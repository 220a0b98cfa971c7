"""The text protocol's floor: a uvloop protocol that reads a line at a time and answers it, in Python.

It stores nothing. PRODUCE is taken apart and given the next offset; CONSUME formats 500 messages that lie there as
Python objects. Nothing is checked. With `ready` behind the port, CONSUME formats nothing either: the answer was made
before, and what is left is the line and the socket.
"""

import asyncio
import sys
from typing import cast

import uvloop

MESSAGES = [(offset, "x" * 80) for offset in range(500)]
READY = ",".join([f"{offset}:{value}" for offset, value in MESSAGES]).encode()


class Answers(asyncio.Protocol):
    """One connection; the end offset is shared by all."""

    end = 0
    ready = False

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
        if command == "CONSUME" and self.ready:
            return b"V1|1|OK|messages=%b hw=500\n" % READY
        if command == "CONSUME":
            messages = ",".join([f"{offset}:{value}" for offset, value in MESSAGES])
            return f"{version}|{identity}|OK|messages={messages} hw={len(MESSAGES)}\n".encode()
        return f"{version}|{identity}|OK|pong\n".encode()


async def serve(port: int) -> None:
    """Until killed."""
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    Answers.ready = sys.argv[2:] == ["ready"]
    uvloop.run(serve(int(sys.argv[1])))
