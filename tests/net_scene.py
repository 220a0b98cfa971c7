"""A server with the toy dialect on a loopback socket, and peers of it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvloop

from korvet_fast.net.certificates import Certificates
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.server import Server
from toy_dialect import ToyDialect, frame


class Peer:
    """A client: sends commands, reads framed replies."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *commands: bytes) -> None:
        self.writer.write(b"".join(map(frame, commands)))

    async def reply(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def ask(self, command: bytes) -> bytes:
        self.send(command)
        return await self.reply()

    async def ended(self) -> bytes:
        """The bytes that still came before the other side closed."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""


class Scene:
    """A server with the toy dialect, and peers of it. With `certificates` it has a listener with TLS as well."""

    def __init__(
        self, server_limits: ServerLimits, limits: Limits, dialect: ToyDialect, certificates: Certificates | None
    ) -> None:
        self.dialect = dialect
        self.server = Server(server_limits, limits)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.server.listen(self.listener, self.dialect)
        self.tls_listener = socket.create_server(("127.0.0.1", 0))
        self.tls_listener.setblocking(False)
        self.tls_address = self.tls_listener.getsockname()
        if certificates is not None:
            self.server.listen(self.tls_listener, self.dialect, certificates)
        self.peers: list[Peer] = []

    async def connect(self, tls: ssl.SSLContext | None = None, ip: str = "127.0.0.1") -> Peer:
        """`ip`: the peer's."""
        address = self.address if tls is None else self.tls_address
        peer = Peer(*await asyncio.open_connection(*address, ssl=tls, local_addr=(ip, 0)))
        self.peers.append(peer)
        return peer

    async def until(self, met: Callable[[], bool]) -> None:
        """Let the loop turn until something is so."""
        deadline = asyncio.get_running_loop().time() + 120
        while not met():
            assert asyncio.get_running_loop().time() < deadline, "it never came to this"
            await asyncio.sleep(0.001)


@asynccontextmanager
async def scene(
    server_limits: ServerLimits | None = None,
    limits: Limits | None = None,
    dialect: ToyDialect | None = None,
    certificates: Certificates | None = None,
) -> AsyncIterator[Scene]:
    made = Scene(server_limits or ServerLimits(), limits or Limits(), dialect or ToyDialect(), certificates)
    try:
        yield made
    finally:
        for peer in made.peers:
            peer.writer.close()
        await made.server.drain(5.0)
        for listener in (made.listener, made.tls_listener):
            listener.close()  # the loop closes it too, in one of its next turns, and there may be none
        assert made.server.pool.used == 0
        assert not made.server.connections


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(scenario(), 240)

    uvloop.run(main())
