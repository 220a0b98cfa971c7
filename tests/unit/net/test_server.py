"""Who may connect, what survives a lack of descriptors, and the drain."""

import asyncio
import logging
import os
import resource
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.net.connection import Connection
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.quota import MOST_ADDRESSES, ConnectionRate, ConnectionRateLimiter
from korvet_fast.rate_limited_log import LONGEST, SEVERAL, RateLimitedLog, printable
from korvet_fast.wire.dialect import FirstRequestLimits
from net_scene import run, scene
from toy_dialect import frame


@pytest.mark.parametrize("server_limits", [ServerLimits(connections=2), ServerLimits(per_ip=2)])
def test_one_connection_too_many_is_refused(server_limits: ServerLimits, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene(server_limits) as here:
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


def test_a_connection_refused_for_too_few_files_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    """Where all are open, and where those that wait for the rate will have the last ones."""
    server_limits = ServerLimits(connections=2, why_fewer="the files are too few")

    async def connect_all(rate: int) -> None:
        async with scene(server_limits._replace(rate=rate)) as here:
            peers = [await here.connect() for _ in range(5)]
            for peer in peers[:2]:
                assert await peer.ask(b"echo me") == b"echo me"
            for peer in peers[2:]:
                assert await peer.ended() == b""

    run(lambda: connect_all(1000))
    assert "127.0.0.1: the files are too few" in caplog.text
    run(lambda: connect_all(1))
    assert "127.0.0.1: max.connection.creation.rate=1 is reached, and the files are too few" in caplog.text
    assert "max.connections" not in caplog.text


def test_a_burst_above_the_rate_is_served_in_the_end() -> None:
    """Of one address, most of which waits aside, and of many."""

    async def scenario() -> None:
        async with scene(ServerLimits(rate=50)) as here:
            peers = [await here.connect() for _ in range(60)]
            peers += [await here.connect(ip=f"127.0.0.{2 + number}") for number in range(10)]
            for peer in peers:
                assert await peer.ask(b"echo me") == b"echo me"

    run(scenario)


def test_who_uses_up_the_rate_keeps_no_other_address_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """The rate is so low that a newcomer behind the flood would wait for minutes."""

    async def scenario() -> None:
        async with scene(ServerLimits(rate=1)) as here:
            flood = [await here.connect() for _ in range(300)]
            newcomer = await here.connect(ip="127.0.0.2")
            assert await newcomer.ask(b"echo me") == b"echo me"
            assert await flood[0].ask(b"echo first") == b"echo first"
            assert await flood[-1].ended() == b""

    run(scenario)
    assert "refused a connection of 127.0.0.1: max.connection.creation.rate=1 is reached" in caplog.text


def test_addresses_whose_rate_is_known_are_limited_in_number() -> None:
    rate = ConnectionRate(1000)
    for number in range(3 * MOST_ADDRESSES):
        rate.enter(f"10.0.{number // 256}.{number % 256}", 0.0)
    assert len(rate.of) == MOST_ADDRESSES


@settings(deadline=None)
@given(rate=st.integers(1, 1000), steps=st.lists(st.floats(0, 0.1), min_size=1, max_size=200))
def test_no_second_sees_more_than_a_burst_and_the_rate(rate: int, steps: list[float]) -> None:
    limiter = ConnectionRateLimiter(rate)
    now = 1000.0
    admitted = []
    for step in steps:
        now += step
        now += max(0.0, limiter.enter(now))
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


def test_finding_4_3_keepalive_finds_out_about_peers_that_are_gone() -> None:
    """A machine that lost its power never closes: the kernel's probes are what ends its connections."""

    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            assert await peer.ask(b"echo me") == b"echo me"
            (connection,) = here.server.connections
            number = connection._transport.get_extra_info("socket").fileno()
            with socket.socket(fileno=os.dup(number)) as accepted:
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1

    run(scenario)


def test_a_bug_met_by_one_newcomer_keeps_no_later_one_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with scene() as here:
            refusal, asked = here.server._quota.refusal, list[str]()

            def fail_once(address: str) -> object:
                asked.append(address)
                if len(asked) == 1:
                    raise RuntimeError("a bug")
                return refusal(address)

            monkeypatch.setattr(here.server._quota, "refusal", fail_once)
            first = await here.connect()
            assert await first.ended() == b""
            second = await here.connect()
            assert await second.ask(b"echo 2") == b"echo 2"

    run(scenario)
    assert "cannot serve a connection of 127.0.0.1: a bug" in caplog.text


def test_the_drain_closes_a_newcomer_that_waits_to_be_let_in() -> None:
    async def scenario() -> None:
        async with scene(ServerLimits(rate=1)) as here:
            ips = ("127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.3")
            newcomers = [await here.connect(ip=ip) for ip in ips]
            await here.until(lambda: len(here.server.connections) == 2)
            await asyncio.sleep(0)  # the third waits aside, and the last one is accepted and waits in front of others
            await here.server.drain(5.0)
            assert [await newcomer.ended() for newcomer in newcomers] == [b""] * len(ips)

    run(scenario)


def test_the_drain_answers_a_newcomer_whose_socket_is_just_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task that let it in is cancelled before it hears that the loop serves the socket."""
    draining: list[asyncio.Task[None]] = []
    made = Connection.connection_made

    async def scenario() -> None:
        async with scene() as here:

            def connection_made(self: Connection, transport: asyncio.BaseTransport) -> None:
                made(self, transport)
                self.buffer_updated(_write(self._window, frame(b"wait a")))
                draining.append(asyncio.get_running_loop().create_task(here.server.drain(30)))

            monkeypatch.setattr(Connection, "connection_made", connection_made)
            newcomer = await here.connect()
            await here.until(lambda: len(here.dialect.started) == 1)
            await asyncio.sleep(0.01)  # the task is cancelled meanwhile
            here.dialect.gate(b"a").set_result(None)
            assert await newcomer.reply() == b"wait a"
            assert await newcomer.ended() == b""
            await draining[0]
            assert not here.server.connections

    run(scenario)


def _write(window: memoryview, data: bytes) -> int:
    window[: len(data)] = data
    return len(data)


def test_memory_may_be_short_while_somebody_is_coming_in() -> None:
    async def scenario() -> None:
        async with scene() as here:
            coming = Connection(here.dialect, here.server._context)
            coming.release_memory()  # has no socket yet
            coming.check(0.0)

    run(scenario)


def test_the_time_of_a_first_request_begins_when_the_socket_is_served() -> None:
    """A program may stand still between the two. Then the sweep closed a socket that was not there yet, and failed."""

    async def scenario() -> None:
        async with scene() as here:
            here.dialect.first_request = FirstRequestLimits(1000, seconds=0.2)
            coming = Connection(here.dialect, here.server._context)
            here.server.connections[coming] = "127.0.0.1"
            coming.check(asyncio.get_running_loop().time() + 3600)
            here.server._sweep()
            assert not coming._requests.closing
            del here.server.connections[coming]

    run(scenario)


def test_the_drain_finishes_what_is_under_way() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(requests=3)) as here:
            busy, polling, idle = [await here.connect() for _ in range(3)]
            await here.until(lambda: len(here.server.connections) == 3)  # whoever is just coming in is not served
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


def test_a_request_heavier_than_the_pool_is_served_alone() -> None:
    async def scenario() -> None:
        async with scene(ServerLimits(pool=1000)) as here:
            one, other = await here.connect(), await here.connect()
            one.send(b"wait " + bytes(5000))
            await here.until(lambda: len(here.dialect.started) == 1)
            other.send(b"echo me too")
            here.dialect.gate(bytes(5000)).set_result(None)
            assert (await one.reply()).startswith(b"wait")
            assert await other.reply() == b"echo me too"

    run(scenario)


def test_long_polls_are_answered_early_when_memory_is_short() -> None:
    async def scenario() -> None:
        async with scene(ServerLimits(pool=1000)) as here:
            patient, other = await here.connect(), await here.connect()
            patient.send(b"poll " + bytes(1100))
            await here.until(lambda: len(here.dialect.started) == 1)
            assert await other.ask(b"echo " + bytes(200)) == b"echo " + bytes(35)
            assert (await patient.reply()).startswith(b"poll")

    run(scenario)


def test_replies_that_wait_for_others_are_counted() -> None:
    async def scenario() -> None:
        async with scene() as here:
            peer = await here.connect()
            peer.send(b"wait a", b"long 100000")
            await here.until(lambda: here.server.pool.used > 100_000)
            here.dialect.gate(b"a").set_result(None)
            assert await peer.reply() == b"wait a"
            assert await peer.reply() == bytes(100_000)
            await here.until(lambda: here.server.pool.used == 0)

    run(scenario)


def test_silent_senders_are_shed_when_memory_is_short() -> None:
    async def scenario() -> None:
        async with scene(ServerLimits(pool=1 << 20), Limits(slow=0.1)) as here:
            silent = [await here.connect() for _ in range(5)]
            for peer in silent:
                peer.writer.write(frame(bytes(4 << 20))[: 1 << 20])
            await here.until(lambda: here.server.pool.used > 1 << 20)
            other = await here.connect()
            for _ in range(3):
                assert await other.ask(b"echo at last") == b"echo at last"
            await here.until(lambda: here.server.pool.used <= 1 << 20)

    run(scenario)


def test_deaf_peers_are_cut_off_sooner_when_memory_is_short() -> None:
    async def scenario() -> None:
        async with scene(ServerLimits(pool=1 << 20), Limits(slow=0.1)) as here:
            deaf = socket.create_connection(here.address)
            deaf.sendall(frame(b"long 32000000"))
            await here.until(lambda: here.server.pool.used > 1 << 20)
            other = await here.connect()
            assert await other.ask(b"echo at last") == b"echo at last"
            await here.until(lambda: len(here.server.connections) == 1)
            deaf.close()

    run(scenario)


def test_provoked_lines_are_few_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    quiet = RateLimitedLog(lambda: now[0], interval=10.0)
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


def test_changes_of_data_have_a_line_each_unless_they_are_many(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    quiet = RateLimitedLog(lambda: now[0], interval=10.0)
    with caplog.at_level(logging.INFO, "korvet_fast"):
        for number in range(SEVERAL + 7):
            quiet.tell("created", f"topic {number}: created")
        quiet.tell("deleted", "topic 0: deleted")
        now[0] = 10.0
        quiet.tell("created", "topic last: created")
        quiet.tell("created", "topic x: created")
    assert [record.getMessage() for record in caplog.records] == [
        *(f"topic {number}: created" for number in range(SEVERAL)),
        "topic 0: deleted",
        "topic last: created (and 7 more like it since the last line)",
        "topic x: created",
    ]


@settings(deadline=None)
@given(st.text(max_size=500))
def test_a_line_is_one_line(text: str) -> None:
    plain = printable(text)
    assert plain.isprintable()
    assert len(plain) <= LONGEST
