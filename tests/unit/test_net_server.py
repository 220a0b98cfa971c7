"""Who may connect, what survives a lack of descriptors, and the drain."""

import asyncio
import logging
import os
import resource
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.net.connection import Limits
from korvet_fast.net.pool import Pool
from korvet_fast.net.quiet import LONGEST, Quiet, printable
from korvet_fast.net.server import Admission, Turnstile
from net_scene import run, scene


@pytest.mark.parametrize("admission", [Admission(connections=2), Admission(per_ip=2)])
def test_one_connection_too_many_is_refused(admission: Admission, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene(admission) as here:
            first, second = await here.connect(), await here.connect()
            assert await first.ask(b"echo 1") == b"echo 1"
            assert await second.ask(b"echo 2") == b"echo 2"
            third = await here.connect()
            assert await third.ended() == b""
            second.writer.close()
            await here.until(lambda: len(here.server.connections) == 1)
            fourth = await here.connect()
            assert await fourth.ask(b"echo 4") == b"echo 4"

    run(scenario)
    assert "=2 is reached" in caplog.text


def test_a_burst_above_the_rate_is_served_in_the_end() -> None:
    async def scenario() -> None:
        async with scene(Admission(rate=50)) as here:
            peers = [await here.connect() for _ in range(60)]
            for peer in peers:
                assert await peer.ask(b"echo me") == b"echo me"

    run(scenario)


@settings(deadline=None)
@given(rate=st.integers(1, 1000), steps=st.lists(st.floats(0, 0.1), min_size=1, max_size=200))
def test_no_second_sees_more_than_a_burst_and_the_rate(rate: int, steps: list[float]) -> None:
    turnstile = Turnstile(rate)
    now = 1000.0
    admitted = []
    for step in steps:
        now += step
        now += max(0.0, turnstile.enter(now))
        admitted.append(now)
    for first, start in enumerate(admitted):
        within = sum(1 for time in admitted[first:] if time < start + 1.0)
        assert within <= 2 * rate + 1


def test_without_descriptors_old_connections_live_and_new_ones_wait() -> None:
    async def scenario() -> None:
        async with scene() as here:
            old = await here.connect()
            assert await old.ask(b"echo old") == b"echo old"
            newcomers = [socket.socket() for _ in range(5)]
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            lowest_free = os.dup(0)
            os.close(lowest_free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
            try:
                for newcomer in newcomers:
                    newcomer.connect(here.address)
                for _ in range(50):
                    assert await old.ask(b"echo still") == b"echo still"
                assert len(here.server.connections) == 1
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await here.until(lambda: len(here.server.connections) == 6)
            for newcomer in newcomers:
                newcomer.close()

    run(scenario)


def test_the_drain_finishes_what_is_under_way() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(requests=3)) as here:
            busy, polling, idle = [await here.connect() for _ in range(3)]
            busy.send(b"wait a", b"echo 1", b"poll", b"echo never started")
            polling.send(b"poll")
            await here.until(lambda: len(here.dialect.started) == 4)
            draining = asyncio.create_task(here.server.drain(30))
            assert await idle.ended() == b""
            assert await polling.reply() == b"poll"
            with pytest.raises(ConnectionRefusedError):
                await here.connect()
            here.dialect.gate(b"a").set_result(None)
            assert [await busy.reply() for _ in range(3)] == [b"wait a", b"echo 1", b"poll"]
            assert await busy.ended() == b""
            await draining
            assert len(here.dialect.started) == 4

    run(scenario)


def test_the_drain_ends_even_if_a_peer_does_not(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene() as here:
            deaf = await here.connect()
            deaf.send(b"long 16000000")
            await here.until(lambda: bool(here.dialect.started))
            deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
            stuck = await here.connect()
            stuck.send(b"wait a")
            await here.until(lambda: len(here.dialect.started) == 2)
            await here.server.drain(0.2)
            assert not here.server.connections
            here.dialect.gate(b"a").set_result(None)
            await here.until(lambda: here.server.pool.used == 0)

    run(scenario)
    assert "2 connections did not finish" in caplog.text


class _Reader:
    """A connection that holds `size` bytes of an unfinished request, and notes whether it may read."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.size = 0
        self.reads = True

    def hold(self, size: int) -> None:
        self.pool.take(size - self.size)
        self.size = size
        self.regulate()

    def regulate(self) -> None:
        self.reads = self.pool.admits(self, unfinished=self.size > 0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), max_size=60))
def test_the_pool_never_stops_everybody(steps: list[tuple[int, int]]) -> None:
    pool = Pool(100)
    readers = [_Reader(pool) for _ in range(5)]
    for which, size in steps:
        reader = readers[which]
        if reader.reads or size < reader.size:
            reader.hold(size)
        assert pool.used == sum(one.size for one in readers)
        unfinished = [one for one in readers if one.size]
        if unfinished:
            assert any(one.reads for one in unfinished)
        if pool.used <= 100:
            assert all(one.reads for one in readers)
    for reader in readers:
        reader.hold(0)
        pool.forget(reader)
    assert pool.used == 0


def test_provoked_lines_are_few_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    quiet = Quiet(lambda: now[0], interval=10.0)
    with caplog.at_level(logging.WARNING, "korvet_fast.net"):
        for _ in range(5):
            quiet.warn("kind", "a line")
        quiet.warn("other kind", "another line")
        now[0] = 11.0
        quiet.warn("kind", "a line")
    assert [record.getMessage() for record in caplog.records] == [
        "a line",
        "another line",
        "a line (and 4 more like it since the last line)",
    ]


@settings(deadline=None)
@given(st.text(max_size=500))
def test_a_line_is_one_line(text: str) -> None:
    plain = printable(text)
    assert plain.isprintable()
    assert len(plain) <= LONGEST
