"""Order, eagerness, limits and endings of a connection, over loopback sockets with a dialect of the test's own."""

import asyncio
import logging
import random
import socket
import struct
from hashlib import sha256

import pytest

from korvet_fast.net.limits import Admission, Limits
from net_scene import run, scene
from toy_dialect import frame

MIB = 1 << 20


def test_replies_keep_the_order_of_requests() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"wait a", b"echo 1", b"wait b", b"none", b"echo 2")
            await here.until(lambda: len(here.dialect.started) == 5)  # all are under way before any is answered
            here.dialect.gate(b"b").set_result(None)
            await asyncio.sleep(0)
            here.dialect.gate(b"a").set_result(None)
            assert [await peer.reply() for _ in range(4)] == [b"wait a", b"echo 1", b"wait b", b"echo 2"]

    run(scenario)


def test_a_request_makes_no_task_whether_it_waits_or_not() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            loop = asyncio.get_running_loop()
            made: list[object] = []

            def count(loop: asyncio.AbstractEventLoop, work: object, **_: object) -> "asyncio.Task[object]":
                made.append(work)
                return asyncio.Task(work, loop=loop)  # type: ignore[arg-type]

            loop.set_task_factory(count)  # type: ignore[arg-type]
            try:
                for _ in range(3):
                    assert await peer.ask(b"echo x") == b"echo x"
                peer.send(b"wait a")
                await here.until(lambda: b"wait a" in here.dialect.started)
                here.dialect.gate(b"a").set_result(None)
                assert await peer.reply() == b"wait a"
                assert made == []
            finally:
                loop.set_task_factory(None)

    run(scenario)


def test_frames_may_arrive_in_any_pieces() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            for byte in frame(b"echo slowly"):
                peer.writer.write(bytes([byte]))
                await peer.writer.drain()
            assert await peer.reply() == b"echo slowly"

    run(scenario)


def test_large_frames_arrive_whole_however_they_are_cut() -> None:
    async def scenario() -> None:
        chance = random.Random(7)
        async with scene() as here:
            peer = await here.connect()
            bodies = [chance.randbytes(size) for size in (1, 70_000, 1_000_000, 0, 300_000, 5_000_000, 140_000, 3)]
            stream = memoryview(b"".join(frame(b"digest " + body) for body in bodies))
            while stream:
                step = chance.choice([1, 5, 1_000, 66_000, 150_000, 700_000])
                peer.writer.write(stream[:step])
                await peer.writer.drain()
                stream = stream[step:]
            assert [await peer.reply() for _ in bodies] == [sha256(body).digest() for body in bodies]

    run(scenario)


def test_a_large_frame_is_read_into_its_place() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            assert await peer.ask(b"echo here") == b"echo here"
            data = frame(b"digest " + bytes(MIB))
            peer.writer.write(data[: MIB // 2])
            (connection,) = here.server.connections
            window = connection.get_buffer(-1)
            await here.until(lambda: here.server.pool.used == MIB // 2)
            place = connection.get_buffer(-1)
            assert isinstance(place.obj, bytearray)
            assert place.obj is not window.obj
            assert len(place) == MIB // 2 - len(data[:4])  # as much again as there is of it
            del place  # it would hold the frame in its size
            peer.writer.write(data[MIB // 2 :])
            assert await peer.reply() == sha256(bytes(MIB)).digest()
            assert connection.get_buffer(-1).obj is window.obj

    run(scenario)


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
        async with scene(Admission(pool=1 * MIB)) as here:
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


def test_a_lost_connection_gives_its_bytes_back_when_its_work_ends() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"wait a", b"echo done")
            peer.writer.write(frame(bytes(100))[:50])
            await here.until(lambda: here.server.pool.used > 50)
            linger_for_nothing = struct.pack("ii", 1, 0)
            peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_nothing)
            peer.writer.transport.abort()  # a reset, not an orderly end
            await here.until(lambda: not here.server.connections)
            assert here.server.pool.used == len(b"wait a")
            here.dialect.gate(b"a").set_result(None)
            await here.until(lambda: here.server.pool.used == 0)

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
        async with scene(limits=Limits(stalled=0.3)) as here:
            peer = await here.connect()
            size = 30_000_000
            peer.send(b"long %d" % size, b"echo end")
            got = 0
            while got < size + 4:
                got += len(await peer.reader.read(min(65536, size + 4 - got)))
                if got % (3 << 20) < 65536:
                    await asyncio.sleep(0.05)
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


@pytest.mark.parametrize("command", [b"hang", b"bug", b"late-bug"])
def test_errors_close_their_own_connection_only(command: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer, other = await here.connect(), await here.connect()
            peer.send(b"echo before", command, b"echo after")
            if command == b"late-bug":
                await here.until(lambda: len(here.dialect.started) == 3)
                here.dialect.gate(b"late-bug").set_result(None)
            assert await peer.ended() in (frame(b"echo before"), b"")
            assert await other.ask(b"echo ok") == b"echo ok"

    with caplog.at_level(logging.WARNING, "korvet_fast.net"):
        run(scenario)
    if command == b"hang":
        assert "it was asked to hang up\\nand did" in caplog.text  # and cannot forge a line of the log
    else:
        assert "ZeroDivisionError" in caplog.text


def test_other_protocols_are_told_apart_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            for _ in range(3):
                peer = await here.connect()
                peer.writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert await peer.ended() == b""

    with caplog.at_level(logging.WARNING, "korvet_fast.net"):
        run(scenario)
    assert caplog.text.count("an HTTP request") == 1  # one line, however many come


@pytest.mark.parametrize("prefix", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
def test_illegal_lengths_close(prefix: bytes) -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.writer.write(prefix)
            assert await peer.ended() == b""

    run(scenario)


def test_a_half_closed_peer_gets_its_answers() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"poll", b"echo 1", b"echo 2")
            peer.writer.write_eof()
            assert await peer.ended() == frame(b"poll") + frame(b"echo 1") + frame(b"echo 2")

    run(scenario)
