"""A connection that is muted (KIP-219): nothing of it is read or started, and nobody else notices."""

import asyncio
import gc
import weakref
from pathlib import Path

from net_scene import run, scene
from tls_world import Authority
from toy_dialect import frame

LONG = b"mute 1000"  # seconds
EVEN_LONGER = b"mute 2000"


def test_what_is_behind_waits_and_others_do_not() -> None:
    async def scenario() -> None:
        async with scene() as here:
            muted, other = await here.connect(), await here.connect()
            muted.send(b"echo before", LONG, b"echo behind")
            assert [await muted.reply() for _ in range(2)] == [b"echo before", LONG]
            muted.send(b"echo later")
            for number in range(5):
                said = b"echo %d" % number
                assert await other.ask(said) == said
            assert b"echo behind" not in here.dialect.started
            (connection,) = (each for each in here.server.connections if each.account.held)
            connection.release_memory()  # memory is short, and what waits here holds some
            assert [await muted.reply() for _ in range(2)] == [b"echo behind", b"echo later"]

    run(scenario)


def test_a_client_that_sends_one_request_at_a_time_is_not_read() -> None:
    async def scenario() -> None:
        async with scene() as here:
            muted, other = await here.connect(), await here.connect()
            assert await muted.ask(LONG) == LONG
            muted.send(b"echo behind")
            for _ in range(5):
                assert await other.ask(b"echo other") == b"echo other"
            assert b"echo behind" not in here.dialect.started
            for connection in here.server.connections:
                connection.release_memory()  # it holds none
            assert await other.ask(b"echo last") == b"echo last"
            assert b"echo behind" not in here.dialect.started

    run(scenario)


def test_it_goes_on_when_the_time_is_over() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"mute 0.01", b"echo a", b"mute 0.01", b"echo b")
            assert [await peer.reply() for _ in range(4)] == [b"mute 0.01", b"echo a", b"mute 0.01", b"echo b"]
            assert await peer.ask(b"echo c") == b"echo c"

    run(scenario)


def test_a_shorter_time_does_not_end_a_longer_one() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer, other = await here.connect(), await here.connect()
            peer.send(b"wait gate", LONG, b"echo behind")
            await here.until(lambda: LONG in here.dialect.started)
            client = here.dialect.sessions[0].client
            assert client is not None
            client.mute(0.001)
            await asyncio.sleep(0.05)
            assert await other.ask(b"echo other") == b"echo other"
            assert b"echo behind" not in here.dialect.started
            here.dialect.gate(b"gate").set_result(None)  # what was under way goes on, and is answered
            assert [await peer.reply() for _ in range(2)] == [b"wait gate", LONG]

    run(scenario)


def test_half_a_frame_is_not_read_on_and_is_not_called_slow() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            whole = frame(b"digest " + bytes(1 << 20))
            peer.writer.write(frame(b"mute 0.2") + whole[: 1 << 19])
            assert await peer.reply() == b"mute 0.2"
            (connection,) = here.server.connections
            connection.check(asyncio.get_running_loop().time() + 1000)
            peer.writer.write(whole[1 << 19 :])
            assert len(await peer.reply()) == 32

    run(scenario)


def test_a_stop_does_not_wait_for_it() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(LONG, b"echo behind")
            assert await peer.reply() == LONG
            await here.server.drain(100)  # ends, if at all, long before the time is over
            assert await peer.ended() == b""

    run(scenario)


def test_a_lost_connection_is_not_kept() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(LONG, EVEN_LONGER)
            assert await peer.reply() == LONG
            (connection,) = here.server.connections
            kept = weakref.ref(connection)
            connection.abort()
            del connection
            await here.until(lambda: not here.server.connections)
            client = here.dialect.sessions[0].client
            assert client is not None
            client.mute(1000)  # a request that outlived it
            here.dialect.sessions.clear()
            del client
            gc.collect()
            assert kept() is None
            assert here.server.pool.used == 0

    run(scenario)


def test_inside_tls_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            muted, other = await here.connect(authority.client()), await here.connect()
            muted.send(LONG, b"echo behind")
            assert await muted.reply() == LONG
            muted.send(b"echo later")
            assert await other.ask(b"echo other") == b"echo other"
            assert here.dialect.started.count(b"echo behind") + here.dialect.started.count(b"echo later") == 0

    run(scenario)
