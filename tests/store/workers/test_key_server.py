"""The worker that has the registry closes: the others are told what was not done, and none makes it wait for long."""

import asyncio
import contextlib
import socket
from pathlib import Path
from unittest.mock import AsyncMock, create_autospec

import pytest

from korvet_fast.store.embedded.registry import Registry
from korvet_fast.store.types import WHOLE
from korvet_fast.store.workers import key_server
from korvet_fast.store.workers.key_server import KeyServer, reachable
from korvet_fast.store.workers.messages import Message, Verb, pack_message
from korvet_fast.store.workers.store import WorkerStore

HELLO = pack_message(Message(Verb.HELLO, 1, [b"9"]))
ANSWERED = pack_message(Message(Verb.ANSWER, 1))
GOODBYE = pack_message(Message(Verb.GOODBYE, 0))


async def connect(directory: Path) -> socket.socket:
    """A connection to the worker that has the registry, which it has not accepted yet."""
    peer = socket.socket(socket.AF_UNIX)
    peer.setblocking(False)
    with reachable(directory / "@workers") as path:
        await asyncio.get_running_loop().sock_connect(peer, str(path))
    return peer


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_comes_as_the_worker_closes(tmp_path: Path, turns: int) -> None:
    """Accepted in time or not: it is told, or ends, and the worker does not wait for it."""
    store = WorkerStore(tmp_path, 1, tmp_path / "locks")
    await store.open()
    loop = asyncio.get_running_loop()
    with await connect(tmp_path) as peer:
        await loop.sock_sendall(peer, HELLO)
        for _ in range(turns):
            await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        heard = b""
        try:
            while not heard.endswith(GOODBYE) and (more := await loop.sock_recv(peer, 1000)):
                heard += more
        except ConnectionResetError:
            assert heard == b"", "the answer is read before the end"
        assert heard in (b"", GOODBYE, ANSWERED + GOODBYE)
    await closing


@pytest.mark.parametrize("turns", range(8))
async def test_who_comes_as_the_registry_breaks_is_not_served(tmp_path: Path, turns: int) -> None:
    """Else it would ask the broken one for ever."""
    server = KeyServer(tmp_path / "@workers", create_autospec(Registry), 1, AsyncMock())
    await server.open()
    loop = asyncio.get_running_loop()
    with await connect(tmp_path) as peer:
        await loop.sock_sendall(peer, HELLO)
        for _ in range(turns):
            await asyncio.sleep(0)
        server.abort()
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionResetError):
                while await loop.sock_recv(peer, 1000):
                    pass


async def test_a_worker_that_stands_still_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_server, "_FAREWELL", 0.05)
    store = WorkerStore(tmp_path, 1, tmp_path / "locks")
    await store.open()
    with await connect(tmp_path) as peer:
        await asyncio.get_running_loop().sock_sendall(peer, HELLO)
        assert await asyncio.get_running_loop().sock_recv(peer, 1000) == ANSWERED
        await store.close()
        assert await asyncio.get_running_loop().sock_recv(peer, 1000) == GOODBYE
        assert await asyncio.get_running_loop().sock_recv(peer, 1000) == b""


async def test_a_worker_that_does_not_give_a_log_up_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One asks the worker that has the registry to have another one give a log up; then it closes."""
    monkeypatch.setattr(key_server, "_LAST_ANSWERS", 600)
    monkeypatch.setattr(key_server, "_FAREWELL", 0.05)
    store = WorkerStore(tmp_path, 1, tmp_path / "locks")
    await store.open()
    loop = asyncio.get_running_loop()
    with await connect(tmp_path) as silent, await connect(tmp_path) as asking:
        await loop.sock_sendall(silent, HELLO)
        assert await loop.sock_recv(silent, 1000) == ANSWERED
        await loop.sock_sendall(asking, pack_message(Message(Verb.RELEASE, 1, [b"9", b"orders:0"])))
        await loop.sock_recv(silent, 1000)
        async with asyncio.timeout(60):
            await store.close()
        assert await loop.sock_recv(asking, 1000) == ANSWERED + GOODBYE


@pytest.mark.parametrize("turns", range(3, 11))
async def test_two_that_want_logs_of_each_other_do_not_hold_the_end_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """To give a log up, each has to ask the registry: the worker that closes does not answer that any more."""
    monkeypatch.setattr(key_server, "_LAST_ANSWERS", 600)
    first, second, third = stores = [WorkerStore(tmp_path, number, tmp_path / "locks") for number in (1, 2, 3)]
    for store in stores:
        await store.open()
    await second.acquire("a:0", WHOLE, epoch=0, floor=0)
    await third.acquire("b:0", WHOLE, epoch=0, floor=0)
    wanting = [
        asyncio.create_task(store.acquire(log, WHOLE, epoch=0, floor=0))
        for store, log in ((second, "b:0"), (third, "a:0"))
    ]
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await asyncio.gather(first.close(), *wanting)
    await second.close()
    await third.close()
