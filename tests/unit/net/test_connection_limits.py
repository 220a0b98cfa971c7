"""Limits of a connection: requests, bytes and times, over loopback sockets with a dialect of the test's own."""

import asyncio
import socket
from hashlib import sha256

import pytest

from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.wire.dialect import FirstRequestLimits
from net_scene import run, scene
from toy_dialect import ToyDialect, frame

MIB = 1 << 20
STEP = 3 * MIB  # that a slow peer takes at a time


def test_no_more_requests_are_started_than_the_limit() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(requests=3)) as here:
            peer = await here.connect()
            other = await here.connect()
            peer.send(*[b"wait a"] * 10)
            await here.until(lambda: len(here.dialect.started) == 3)
            assert await other.ask(b"echo me") == b"echo me"  # others are served meanwhile
            assert len(here.dialect.started) == 4
            here.dialect.gate(b"a").set_result(None)
            assert [await peer.reply() for _ in range(10)] == [b"wait a"] * 10

    run(scenario)


def test_more_requests_than_the_limit_in_one_read_are_all_answered() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(requests=3)) as here:
            peer = await here.connect()
            peer.send(*[b"echo %d" % number for number in range(20)])
            assert [await peer.reply() for _ in range(20)] == [b"echo %d" % number for number in range(20)]

    run(scenario)


def test_bytes_under_way_are_limited_but_one_large_request_passes() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(request_bytes=1000)) as here:
            peer = await here.connect()
            assert await peer.ask(b"echo " + bytes(5000)) == b"echo " + bytes(35)
            peer.send(b"wait a", b"echo " + bytes(990), b"echo b")
            await here.until(lambda: here.server.pool.used > 990)
            assert here.dialect.started[1:] == [b"wait a"]
            here.dialect.gate(b"a").set_result(None)
            assert [await peer.reply() for _ in range(3)] == [b"wait a", b"echo " + bytes(35), b"echo b"]

    run(scenario)


def test_a_full_pool_stops_reading_but_lets_one_request_finish() -> None:
    async def scenario() -> None:
        async with scene(ServerLimits(pool=1 * MIB)) as here:
            peers = [await here.connect() for _ in range(4)]
            whole = frame(b"echo " + bytes(2 * MIB))
            for peer in peers:
                peer.writer.write(whole[:-1])  # four unfinished requests, each larger than the pool
            await here.until(lambda: here.server.pool.used > 2 * MIB)
            assert here.server.pool.used < 4 * MIB
            for peer in peers:
                peer.writer.write(whole[-1:])
            for peer in peers:
                assert (await peer.reply()).startswith(b"echo ")

    run(scenario)


def test_a_full_pool_stops_reading_small_requests_with_no_gap_between_them() -> None:
    """Each read ends within the next one, which is no reason to read on."""

    async def scenario() -> None:
        async with scene(ServerLimits(pool=1 * MIB)) as here:
            peers = [await here.connect() for _ in range(8)]
            other = await here.connect()
            name = b"a" * 60_000
            for peer in peers:
                peer.send(*[b"wait " + name] * 60)
            await here.until(lambda: here.server.pool.used > 1 * MIB)
            for _ in range(500):
                assert await other.ask(b"echo me") == b"echo me"
            assert here.server.pool.used < 4 * MIB
            here.dialect.gate(name).set_result(None)
            for peer in peers:
                for _ in range(60):
                    assert (await peer.reply()).startswith(b"wait a")

    run(scenario)


def test_a_peer_that_takes_no_replies_is_cut_off_and_starts_nothing_more() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(stalled=0.2)) as here:
            other = await here.connect()
            raw = socket.create_connection(here.address)
            with raw:
                raw.setblocking(False)
                raw.sendall(frame(b"long 16000000") * 10)
                await here.until(lambda: len(here.server.connections) == 2)
                await here.until(lambda: len(here.server.connections) == 1)
            assert here.dialect.started.count(b"long 16000000") == 1
            assert await other.ask(b"echo still here") == b"echo still here"

    run(scenario)


def test_a_slow_peer_that_takes_some_bytes_stays() -> None:
    async def scenario() -> None:
        # It pauses for half a second at a time, and in all for longer than anybody may take nothing.
        async with scene(limits=Limits(stalled=4.0)) as here:
            peer = await here.connect()
            size = 30_000_000
            peer.send(b"long %d" % size, b"echo end")
            got = 0
            while got < size + 4:
                data = await peer.reader.read(min(65536, size + 4 - got))
                assert data, "hung up on"
                if got // STEP < (got + len(data)) // STEP:
                    await asyncio.sleep(0.5)
                got += len(data)
            assert await peer.reply() == b"echo end"

    run(scenario)


@pytest.mark.parametrize("sent", [b"", frame(b"echo unfinished")[:-1], b"\0"])
def test_silence_ends_a_connection(sent: bytes) -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(idle=0.2, frame=0.2)) as here:
            peer = await here.connect()
            peer.writer.write(sent)
            assert await peer.ended() == b""

    run(scenario)


def test_a_drip_does_not_keep_a_request_alive() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(frame=0.3)) as here:
            peer = await here.connect()
            peer.send(b"echo first")
            peer.writer.write(frame(bytes(10_000))[:10])
            assert await peer.reply() == b"echo first"
            while not peer.reader.at_eof() and here.server.connections:
                peer.writer.write(b"x")
                await asyncio.sleep(0.02)
            await here.until(lambda: not here.server.connections)

    run(scenario)


def test_waiting_for_an_answer_is_not_idleness() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(idle=0.1)) as here:
            waiting, silent = await here.connect(), await here.connect()
            waiting.send(b"wait a")
            assert await silent.ended() == b""  # so the deadline has passed for both
            here.dialect.gate(b"a").set_result(None)
            assert await waiting.reply() == b"wait a"

    run(scenario)


def test_a_dialect_says_how_large_the_first_request_may_be(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            here.dialect.first_request = FirstRequestLimits(100)
            whole, announced, small = [await here.connect() for _ in range(3)]
            whole.send(b"echo " + bytes(200))
            announced.writer.write(frame(bytes(1000))[:8])
            assert [await whole.ended(), await announced.ended()] == [b"", b""]
            assert here.dialect.started == []
            assert await small.ask(b"echo small") == b"echo small"
            assert await small.ask(b"digest " + bytes(200)) == sha256(bytes(200)).digest()

    run(scenario)
    assert "its first request has 205 bytes, and may have 100" in caplog.text


def test_a_dialect_says_how_long_the_first_request_may_take(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            other = ToyDialect()
            other.first_request = FirstRequestLimits(1000, seconds=0.2)
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            here.server.listen(listener, other)
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(frame(b"echo")[:3])
            async with asyncio.timeout(120):
                assert await reader.read() == b""
            writer.close()

    run(scenario)
    assert "a request was not complete after 0.2 s" in caplog.text
