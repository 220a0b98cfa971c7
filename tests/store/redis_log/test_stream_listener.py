"""Being told of what other programs put into streams, and of nothing else."""

import asyncio
from collections.abc import Callable

import pytest

from korvet_fast.store.redis.log import stream_listener
from korvet_fast.store.types import LogFormat
from redis_server import PROGRAMS, RedisServer
from store.engines import NOW, RedisEngine
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene


@pytest.fixture
def entries(shared_redis: Callable[[str], RedisServer]) -> RedisNamespace:
    """A place where every record is an entry."""
    server = shared_redis(PROGRAMS[1])
    return RedisNamespace(server, RedisEngine(server.url, LogFormat(10, entries_layout=True)))


async def hear_something_else(entries: RedisNamespace, scene: Scene) -> None:
    """When this ends, everything that was put in before has been told, if it is."""
    await scene.acquire("else:0")
    appended = asyncio.Event()
    entries.call("XADD", f"{entries.maker.namespace}:else:0", "*", "value", "a")
    scene.store.shared.notify("else:0", 0, appended.set)
    await appended.wait()
    await scene.drop("else:0")


async def until_listening(entries: RedisNamespace) -> bytes:
    """The number of the connection that waits in XREAD, once there is one."""
    while True:
        for line in entries.call("CLIENT", "LIST").splitlines():
            if b"cmd=xread" in line and b"flags=b" in line:
                number: bytes = line.split()[0].removeprefix(b"id=")
                return number
        await asyncio.sleep(0.01)


async def test_told_once(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        end = (await scene.fill(LOG, 2)).end + scene.origin
        appended = asyncio.Event()
        told: list[int] = []

        def grow() -> None:
            told.append(1)
            appended.set()

        scene.store.shared.notify(LOG, end, grow)
        entries.xadd("value", "a", at=entries.id(2))
        await appended.wait()
        entries.xadd("value", "b", at=entries.id(3))
        await hear_something_else(entries, scene)
        assert len(told) == 1


async def test_there_already(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        entries.xadd("value", "a", at=entries.id(0))
        appended = asyncio.Event()
        scene.store.shared.notify(LOG, 0, appended.set)
        await appended.wait()


async def test_there_before_the_first_read(entries: RedisNamespace) -> None:
    """A read takes no notice of it: the leader has not, and its next append goes where it left the log."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        entries.xadd("value", "a", at=entries.id(0))
        await scene.store.open_log(LOG).read(0, 1 << 20, 1)
        appended = asyncio.Event()
        scene.store.shared.notify(LOG, 0, appended.set)
        await asyncio.wait_for(appended.wait(), 120)


async def test_own_appends(entries: RedisNamespace) -> None:
    """They are not told of, and those of others are, before and after."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        told: list[int] = []
        appended = asyncio.Event()

        def grow() -> None:
            told.append(1)
            appended.set()

        scene.store.shared.notify(LOG, 0, grow)
        for _ in range(10):
            await scene.fill(LOG, 3)
        await hear_something_else(entries, scene)
        assert told == []
        entries.xadd("value", "a", at=entries.id(30))
        await appended.wait()


async def test_many(entries: RedisNamespace) -> None:
    """One connection follows them all; who has ended it is not told."""
    async with entries.scene() as scene:
        logs = [f"many:{number}" for number in range(50)]
        for log in logs:
            await scene.acquire(log)
        told: list[str] = []
        connections = entries.call("INFO", "clients").split(b"connected_clients:")[1].split()[0]
        ends = [scene.store.shared.notify(log, 0, lambda log=log: told.append(log)) for log in logs]
        for number in (7, 21):
            ends[number]()
        for number in (3, 7, 21, 40):
            entries.call("XADD", f"{entries.maker.namespace}:{logs[number]}", "*", "value", "a")
        while len(told) < 2:
            await asyncio.sleep(0.01)
        more = scene.store.shared.notify(LOG, 0, lambda: None)
        await hear_something_else(entries, scene)
        assert sorted(told) == ["many:3", "many:40"]
        now = entries.call("INFO", "clients").split(b"connected_clients:")[1].split()[0]
        assert int(now) == int(connections) + 1
        more()
        entries.call("XADD", f"{entries.maker.namespace}:{logs[11]}", "*", "value", "a")
        while len(told) < 3:
            await asyncio.sleep(0.01)


async def test_the_connection_is_closed_when_nobody_waits(
    entries: RedisNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_listener, "_BLOCK", 0.2)
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        wanted = [LOG]
        told: list[int] = []
        scene.store.shared.notify(LOG, 0, lambda: told.append(1), lambda: bool(wanted))
        listening = b"id=%s " % await until_listening(entries)
        await asyncio.sleep(0.5)
        assert told == []
        assert listening in entries.call("CLIENT", "LIST")
        wanted.clear()
        while listening in entries.call("CLIENT", "LIST"):
            await asyncio.sleep(0.01)
        assert told == [1]
        appended = asyncio.Event()
        scene.store.shared.notify(LOG, 0, appended.set)
        entries.xadd("value", "a")
        await appended.wait()


async def test_added_while_waiting(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.acquire("orders:1")
        scene.store.shared.notify("orders:1", NOW << 10, lambda: None)
        await until_listening(entries)
        appended = asyncio.Event()
        scene.store.shared.notify(LOG, 0, appended.set)
        entries.xadd("value", "a")
        await appended.wait()


async def test_connection_lost(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        appended = asyncio.Event()
        scene.store.shared.notify(LOG, 0, appended.set)
        entries.call("CLIENT", "KILL", "ID", await until_listening(entries))
        entries.xadd("value", "a")
        await appended.wait()


async def test_interest_lost_while_it_connects(entries: RedisNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        end = (await scene.fill(LOG, 1)).end + scene.origin
        topology = scene.store._topology
        connect, connected = topology.connect, asyncio.Event()

        async def connect_late(*given: object) -> object:
            lose()
            pipeline = await connect(*given)
            connected.set()
            return pipeline

        monkeypatch.setattr(topology, "connect", connect_late)
        lose = scene.store.shared.notify(LOG, end, lambda: None)
        (listener,) = scene.store._stream_listener._listeners.values()
        working = listener._working
        await connected.wait()
        await until_listening(entries)
        assert not working.done()
