"""A dialect for testing `net` alone: a frame is a command, and the test decides when the work for it ends."""

import asyncio
from collections.abc import Iterable
from hashlib import sha256

from korvet_fast._native import Frames
from korvet_fast.core.client_session import Client
from korvet_fast.wire.dialect import CloseConnection, FirstRequestLimits, Reply

LIMIT = 32 << 20


def frame(payload: bytes) -> bytes:
    """`payload` behind its length, as both sides send it."""
    return len(payload).to_bytes(4, "big") + payload


class ToyDialect:
    """Counts what was started, and how long it had waited; `gates` are what `wait NAME` waits for."""

    of_peers = False
    farewell = b""
    first_bytes = None
    listener_name = "a toy listener"

    def __init__(self) -> None:
        self.started: list[bytes] = []
        self.gates: dict[bytes, asyncio.Future[None]] = {}
        self.sessions: list[ToySession] = []
        self.waits: list[tuple[bytes, float]] = []
        self.first_request = FirstRequestLimits(LIMIT)

    def gate(self, name: bytes) -> "asyncio.Future[None]":
        return self.gates.setdefault(name, asyncio.get_running_loop().create_future())

    def frames(self) -> Frames:
        return Frames(LIMIT)

    def session(self, peer: str, client: Client | None = None) -> "ToySession":
        self.sessions.append(ToySession(self, client))
        return self.sessions[-1]


class ToySession:
    """Commands: echo TEXT, digest BYTES, wait NAME, poll (until closed), none, hang, bug, late-bug.

    And long N: a reply of N bytes; mute SECONDS: the connection is muted, and answered.
    """

    is_authenticated = True

    def __init__(self, dialect: ToyDialect, client: Client | None = None) -> None:
        self.dialect = dialect
        self.client = client
        self.principal = ""
        self.closing = asyncio.get_running_loop().create_future()

    async def handle(self, frame_: bytearray) -> Reply:
        command, _, rest = bytes(frame_).partition(b" ")
        self.dialect.started.append(bytes(frame_[:40]))
        if command == b"wait":
            await self.dialect.gate(rest)
            await asyncio.sleep(0)
        elif command == b"poll":
            await asyncio.wait([self.closing])
        elif command == b"long":
            return list(_pieces(int(rest)))
        elif command == b"mute":
            assert self.client is not None
            self.client.mute(float(rest))
        elif command == b"none":
            return []
        elif command == b"digest":
            return [frame(sha256(rest).digest())]
        elif command == b"hang":
            raise CloseConnection("it was asked to hang up\nand did")
        elif command == b"bug":
            raise ZeroDivisionError("a bug of the test")
        elif command == b"late-bug":
            await self.dialect.gate(b"late-bug")
            raise ZeroDivisionError("a late bug of the test")
        return [frame(bytes(frame_[:40]))]

    def cost(self, frame_: bytearray) -> int:
        return len(frame_)

    def note_wait(self, frame_: bytearray, seconds: float) -> None:
        self.dialect.waits.append((bytes(frame_[:40]), seconds))

    def release_memory(self) -> None:
        self.close()

    def note_failed_authentication(self, api: str, reason: str) -> None:
        """Nobody asks for it."""

    def close(self) -> None:
        if not self.closing.done():
            self.closing.set_result(None)


def _pieces(size: int) -> Iterable[bytes]:
    yield size.to_bytes(4, "big")
    yield bytes(size)
