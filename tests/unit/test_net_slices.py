"""Replies with slices of files: whole, in order, under the same limits, whatever peer, disk and file do meanwhile."""

import asyncio
import errno
import fcntl
import logging
import os
import random
import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.net.limits import Limits
from korvet_fast.store.embedded.files import Handle
from net_scene import Scene, run, scene
from toy_dialect import frame

MIB = 1 << 20
SIZE = 24 * MIB + 12_345
DATA = random.Random(7).randbytes(SIZE)


class Evicted(Handle):
    """A file that leaves the page cache as soon as it is looked for; reads of it can be held up, and fail."""

    __slots__ = ("failure", "gate", "reads")

    def __init__(self, path: Path, failure: OSError | None = None) -> None:
        super().__init__(path)
        self.failure = failure
        self.gate = threading.Event()
        self.gate.set()
        self.reads = 0

    def caches(self, position: int, length: int) -> bool:
        return False

    def read(self, position: int, length: int) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            self.gate.wait(20)
            self.reads += 1
            if self.failure is not None:
                raise self.failure
        return super().read(position, length)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


def slow_peer(here: Scene) -> socket.socket:
    """One that has little room for what it does not read."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    peer.connect(here.address)
    return peer


async def ask_slowly(here: Scene, *commands: bytes) -> socket.socket:
    """A slow peer that has asked for this, and whose socket is full."""
    peer = slow_peer(here)
    peer.sendall(b"".join(map(frame, commands)))
    peer.setblocking(False)
    await here.until(lambda: bool(here.dialect.started) and any(c._outgoing.pending for c in here.server.connections))
    return peer


async def receive(peer: socket.socket, size: int) -> bytes:
    """So many bytes, or all until the other side closes."""
    got = bytearray()
    while len(got) < size and (data := await asyncio.get_running_loop().sock_recv(peer, 1 << 20)):
        got += data
    return bytes(got)


def answer(at: int, size: int) -> bytes:
    return frame(b"<" + DATA[at : at + size] + b">")


def test_slices_and_bytes_come_whole_and_in_order(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            peer = await here.connect()
            peer.send(b"wait a", b"slice 1 70000", b"echo 1", b"slice 4095 3000000", b"slice 0 1", b"none", b"echo 2")
            peer.send(b"long 3000000", b"slice 12345 %d" % (SIZE - 12345), b"echo 3")
            here.dialect.gate(b"a").set_result(None)
            assert await peer.reply() == b"wait a"
            for at, size in ((1, 70_000), (4095, 3_000_000), (0, 1)):
                assert frame(await peer.reply()) == answer(at, size)
                if size > 1:
                    assert at == 4095 or await peer.reply() == b"echo 1"
            assert await peer.reply() == b"echo 2"
            assert await peer.reply() == bytes(3_000_000)
            assert frame(await peer.reply()) == answer(12345, SIZE - 12345)
            assert await peer.reply() == b"echo 3"

    run(scenario)


@pytest.mark.parametrize("refused", [(), (2 * MIB,), (2 * MIB, MIB)])
def test_a_small_pipe_will_do(path: Path, monkeypatch: pytest.MonkeyPatch, refused: tuple[int, ...]) -> None:
    real = fcntl.fcntl

    def restricted(fd: int, command: int, argument: int = 0) -> Any:
        if command == fcntl.F_SETPIPE_SZ and argument in refused:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return real(fd, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", restricted)

    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            peer = await here.connect()
            peer.send(b"slice 5 5000000", b"echo x")
            assert frame(await peer.reply()) == answer(5, 5_000_000)
            assert await peer.reply() == b"echo x"

    run(scenario)


def test_a_slow_peer_gets_all_and_has_nothing_more_started_meanwhile(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            with await ask_slowly(here, b"slice 0 %d" % SIZE, b"echo a", b"slice 7 %d" % (SIZE - 7)) as peer:
                assert len(here.dialect.started) == 1
                assert here.server.pool.used > 10 * MIB  # what it does not take counts
                got = await receive(peer, 2 * SIZE + 20 + len(b"echo a") - 7 + 4 - 8)
            assert got == answer(0, SIZE) + frame(b"echo a") + answer(7, SIZE - 7)

    run(scenario)


def test_a_peer_that_takes_nothing_is_cut_off(path: Path) -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(stalled=0.2)) as here:
            here.dialect.file = Handle(path)
            other = await here.connect()
            with await ask_slowly(here, b"slice 0 %d" % SIZE):
                await here.until(lambda: len(here.server.connections) == 1)
            assert await other.ask(b"echo still here") == b"echo still here"

    run(scenario)


def test_a_peer_may_go_in_the_middle(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            peer = await ask_slowly(here, b"slice 0 %d" % SIZE)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            await here.until(lambda: not here.server.connections)

    run(scenario)


def test_a_drain_sends_the_rest(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            with await ask_slowly(here, b"slice 0 %d" % SIZE, b"echo never started") as peer:
                drain = asyncio.ensure_future(here.server.drain(20))
                await asyncio.sleep(0.05)
                assert not drain.done()
                assert await receive(peer, 2 * SIZE) == answer(0, SIZE)
                await drain

    run(scenario)


def test_a_drain_that_takes_too_long_cuts_off(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            with await ask_slowly(here, b"slice 0 %d" % SIZE):
                await here.server.drain(0.05)
            assert not here.server.connections

    run(scenario)


def test_a_peer_that_has_said_all_still_gets_the_rest(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            with await ask_slowly(here, b"slice 0 %d" % SIZE) as peer:
                peer.shutdown(socket.SHUT_WR)
                await asyncio.sleep(0.05)
                assert await receive(peer, 2 * SIZE) == answer(0, SIZE)

    run(scenario)


def test_a_file_that_is_removed_is_sent_to_its_end(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            with await ask_slowly(here, b"slice 0 %d" % SIZE) as peer:
                path.unlink()
                here.dialect.file = Handle(Path(os.devnull))  # nobody else holds the file
                assert await receive(peer, SIZE + 6) == answer(0, SIZE)

    run(scenario)


def test_a_file_that_is_cut_short_ends_the_connection(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = Handle(path)
            with await ask_slowly(here, b"slice 0 %d" % SIZE, b"echo never") as peer:
                os.truncate(path, 0)
                assert len(await receive(peer, SIZE)) < SIZE
            await here.until(lambda: not here.server.connections)

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert "cannot be read" in caplog.text and "the file ends before" in caplog.text


def test_what_left_the_page_cache_is_read_on_another_thread(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = file = Evicted(path)
            file.gate.clear()
            with await ask_slowly(here, b"slice 0 %d" % SIZE, b"echo behind") as peer:
                other = await here.connect()
                assert await other.ask(b"echo before") == b"echo before"
                reading = asyncio.ensure_future(receive(peer, SIZE + 6 + 4 + 11))
                await asyncio.sleep(0.05)
                assert await other.ask(b"echo meanwhile") == b"echo meanwhile"
                assert not reading.done()
                file.gate.set()
                assert await reading == answer(0, SIZE) + frame(b"echo behind")
            assert file.reads > 1

    run(scenario)


def test_a_disk_that_cannot_be_read_ends_the_connection(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = file = Evicted(path, OSError(errno.EIO, "Input/output error"))
            file.gate.clear()
            with await ask_slowly(here, b"slice 0 %d" % SIZE) as peer:
                file.gate.set()
                assert len(await receive(peer, SIZE)) < SIZE
            await here.until(lambda: not here.server.connections)

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert "Input/output error" in caplog.text


def test_a_peer_may_go_while_the_disk_is_read(path: Path) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.file = file = Evicted(path)
            file.gate.clear()
            peer = await ask_slowly(here, b"slice 0 %d" % SIZE)
            (connection,) = here.server.connections
            reading = asyncio.ensure_future(receive(peer, SIZE + 6))
            await here.until(lambda: connection._outgoing._reading)
            reading.cancel()
            connection.abort()
            await here.until(lambda: not here.server.connections)
            file.gate.set()
            await here.until(lambda: not connection._outgoing._reading)
            peer.close()

    run(scenario)
