"""Order, eagerness and endings of a connection, over loopback sockets with a dialect of the test's own."""

import asyncio
import gc
import logging
import random
import socket
import struct
import time
import weakref
from contextlib import closing
from hashlib import sha256

import pytest

from korvet_fast.core.fair_queue import WAIT_AFTER
from korvet_fast.net.connection import Connection
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.pool import SMALL
from net_scene import Peer, Scene, run, scene
from raw_connection import reset
from receive_queue import ReceiveQueue
from toy_dialect import frame

MIB = 1 << 20


async def begin_large_frame(here: Scene) -> tuple[Peer, bytes, Connection]:
    """A greeted peer that has sent half of a frame of a MiB: the peer, the whole frame and the server's connection."""
    peer = await here.connect()
    assert await peer.ask(b"echo here") == b"echo here"
    data = frame(b"digest " + bytes(MIB))
    peer.writer.write(data[: MIB // 2])
    (connection,) = here.server.connections
    return peer, data, connection


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
            assert await peer.ask(b"echo x") == b"echo x"  # the connection is made: that is a task's work
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


def test_the_only_request_under_way_is_answered_in_the_turn_in_which_it_ends() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"wait a")
            await here.until(lambda: b"wait a" in here.dialect.started)
            (connection,) = here.server.connections
            here.dialect.gate(b"a").set_result(None)
            for _ in range(2):  # the handler waits for two turns of the loop itself
                assert connection._out.slots
                await asyncio.sleep(0)
            assert not connection._out.slots, "a busy loop's turns take milliseconds each"
            assert await peer.reply() == b"wait a"

    run(scenario)


@pytest.mark.parametrize("pieces", [(b"\x16", b"\x03\x01\0\x05hello"), (b"G", b"E", b"T", b" / HTTP/1.1\r\n")])
def test_another_protocol_is_detected_whatever_the_pieces(
    pieces: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            await here.until(lambda: len(here.server.connections) == 1)
            (connection,), sent = here.server.connections, 0
            for piece in pieces:
                await here.until(lambda sent=sent: connection._frames.pending == sent)
                peer.writer.write(piece)
                sent += len(piece)
            assert await peer.ended() == b""
        assert "and the first bytes look like" in caplog.text

    run(scenario)


def test_frames_may_arrive_in_any_pieces() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            with closing(ReceiveQueue(peer.writer.get_extra_info("socket"))) as queue:
                for count, byte in enumerate(frame(b"echo slowly"), 1):
                    peer.writer.write(bytes([byte]))
                    await queue.empty(count)
            assert await peer.reply() == b"echo slowly"

    run(scenario)


def test_large_frames_arrive_whole_however_they_are_cut() -> None:
    async def scenario() -> None:
        chance = random.Random(7)
        async with scene() as here:
            peer = await here.connect()
            bodies = [chance.randbytes(size) for size in (1, 70_000, 1_000_000, 0, 300_000, 5_000_000, 140_000, 3)]
            stream = memoryview(b"".join(frame(b"digest " + body) for body in bodies))
            sent = 0
            with closing(ReceiveQueue(peer.writer.get_extra_info("socket"))) as queue:
                while stream:
                    step = chance.choice([1, 5, 1_000, 66_000, 150_000, 700_000])
                    peer.writer.write(stream[:step])
                    await peer.writer.drain()
                    sent += len(stream[:step])
                    stream = stream[step:]
                    await queue.empty(sent)  # so that each step begins where the server has no more
            assert [await peer.reply() for _ in bodies] == [sha256(body).digest() for body in bodies]

    run(scenario)


def test_a_large_frame_is_read_into_its_place() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer, data, connection = await begin_large_frame(here)
            window = connection.get_buffer(-1)
            await here.until(lambda: here.server.pool.used == len(data) - 4)  # room for all of it is reserved
            await here.until(lambda: connection._frames.pending == MIB // 2)
            place = connection.get_buffer(-1)
            assert isinstance(place.obj, bytearray)
            assert place.obj is not window.obj
            assert len(place) == MIB // 2 - len(data[:4])  # as much again as there is of it
            del place  # it would hold the frame in its size
            peer.writer.write(data[MIB // 2 :])
            assert await peer.reply() == sha256(bytes(MIB)).digest()
            assert connection.get_buffer(-1).obj is window.obj

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


def test_finding_3_6_an_unexpected_error_that_comes_again_and_again_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with scene() as here:
            for _ in range(50):
                peer = await here.connect()
                peer.send(b"bug")
                assert await peer.ended() == b""

    run(scenario)
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "unexpected error" in record.getMessage()
    assert caplog.text.count("Traceback") == 1


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


def test_a_frame_that_waits_for_memory_when_its_connection_is_lost_leaves_nothing_behind() -> None:
    """The connection gives back at its end just the room that the request waits for."""

    async def scenario() -> None:
        async with scene(ServerLimits(pool=1 << 20), Limits(requests=1)) as made:
            peer, pool = await made.connect(), made.server.pool
            large = frame(bytes(200 << 10))  # there is room for one
            peer.writer.write(frame(b"wait gate") + large[:-1000])
            await made.until(lambda: pool.large_frames.used > 0)
            (connection,) = made.server.connections
            await made.until(lambda: connection._receive.pending == len(large) - 1000)
            peer.writer.write(large[-1000:] + large[:1000])
            await made.until(lambda: bool(pool.large_frames))
            connection.abort()
            await made.until(lambda: not made.server.connections)
            assert pool.large_frames.used == 0
            made.dialect.gate(b"gate").set_result(None)

    run(scenario)


def test_a_connection_that_is_lost_is_freed_without_a_collection() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"echo 1", b"wait a", b"echo 2", b"long 3000000")
            await here.until(lambda: len(here.dialect.started) == 4)
            (connection,) = here.server.connections
            freed = weakref.ref(connection)
            del connection
            reset(peer.writer)
            await here.until(lambda: not here.server.connections)
            await here.until(lambda: freed() is None)  # while a request of it is still at work
            here.dialect.gate(b"a").set_result(None)

    gc.disable()
    try:
        run(scenario)
    finally:
        gc.enable()


def test_finding_2_11_of_a_long_turn_only_small_requests_get_more() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peers = [await here.connect() for _ in range(3)]
            for peer in peers:
                assert await peer.ask(b"echo hello") == b"echo hello"
            here.dialect.started.clear()
            connections = list(here.server.connections)
            here.server._context.queue.count(1.0)  # what others used of this turn of the loop
            requests = [b"echo " + bytes(5000), b"echo " + bytes(6000), b"echo small"]
            for connection, request in zip(connections, requests, strict=True):
                data = frame(request)
                connection.get_buffer(-1)[: len(data)] = data
                connection.buffer_updated(len(data))
            assert here.dialect.started == [b"echo small"]
            await here.until(lambda: len(here.dialect.started) == 3)

    run(scenario)


def test_finding_2_11_of_a_long_turn_large_frames_get_one_more_read() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer, data, connection = await begin_large_frame(here)
            await here.until(lambda: connection._frames.pending == MIB // 2)
            here.server._context.queue.count(1.0)  # what others used of this turn of the loop
            place = connection.get_buffer(-1)
            size = len(place)
            assert size == SMALL
            place[:] = bytes(size)
            del place
            connection.buffer_updated(size)
            assert connection._requests.paused
            peer.writer.write(data[MIB // 2 + size :])
            assert await peer.reply() == sha256(bytes(MIB)).digest()
            assert not connection._requests.paused

    run(scenario)


@pytest.mark.parametrize("times", [0.75, 1.25])
def test_finding_2_11_reads_of_a_large_frame_count_with_the_time_they_took(
    monkeypatch: pytest.MonkeyPatch, times: float
) -> None:
    """Not with their bytes: into memory that was not touched yet, a read takes ten times as long."""
    now = time.monotonic()
    for reader in ("net.connection", "core.fair_queue"):
        monkeypatch.setattr(f"korvet_fast.{reader}.monotonic", lambda: now)

    async def scenario() -> None:
        nonlocal now
        async with scene() as here:
            peer = await here.connect()
            assert await peer.ask(b"echo here") == b"echo here"
            data = frame(b"digest " + bytes(16 * MIB))
            peer.writer.write(data[:MIB])
            (connection,) = here.server.connections
            await here.until(lambda: connection._frames.pending == MIB)
            here.server._context.queue.spent = 0.0
            sent = MIB
            for _ in range(3):
                place = connection.get_buffer(-1)
                size = len(place)
                place[:] = bytes(size)
                del place
                now += times * WAIT_AFTER / 3
                connection.buffer_updated(size)
                sent += size
            assert connection._requests.paused == (times > 1)
            peer.writer.write(data[sent:])
            assert await peer.reply() == sha256(bytes(16 * MIB)).digest()

    run(scenario)
