"""The hot connection: order, loss, silence, and what a server may say that it must not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast._native import ReplyError, pack, replies, reply
from korvet_fast.core.types import Buffer
from korvet_fast.errors import StoreError
from korvet_fast.store.redis import lane as lanes
from korvet_fast.store.redis.connect import connect
from korvet_fast.store.redis.lane import Asking, Lane, LaneDown, LaneLost
from korvet_fast.store.redis.url import Endpoint, parse_url
from redis_server import RedisServer

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def lane_to(port: int, timeout: float = 5.0) -> AsyncIterator[Lane]:
    """A lane, closed at the end."""
    url = parse_url(f"redis://127.0.0.1:{port}?socket_timeout={timeout}")
    lane = await connect(url, url.nodes[0], None)
    try:
        yield lane
    finally:
        lane.close("the test is over")


@asynccontextmanager
async def fake(talk: Talk) -> AsyncIterator[Lane]:
    """A lane to a server that takes the introduction and goes on as `talk` says."""
    over, gone = asyncio.Event(), asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"korvet-fast\r\n")
        writer.write(b"+OK\r\n")
        await talk(reader, writer)
        await over.wait()
        writer.transport.abort()
        gone.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        async with lane_to(server.sockets[0].getsockname()[1]) as lane:
            yield lane
    finally:
        over.set()
        await gone.wait()
        server.close()
        await asyncio.sleep(0)


def echo(text: str) -> bytes:
    return pack([["ECHO", text]])


def said(raw: list[Buffer]) -> list[object]:
    return [reply(each) for each in raw]


async def test_replies_come_in_the_order_of_the_calls(redis_server: RedisServer) -> None:
    async with lane_to(redis_server.port) as lane:
        calls = [lane.send(echo(f"{n}") + echo(f"{n}b"), 2) for n in range(1000)]
        for number, call in enumerate(calls):
            assert said(await call) == [f"{number}".encode(), f"{number}b".encode()]


async def test_replies_may_come_as_one_buffer(redis_server: RedisServer) -> None:
    async with lane_to(redis_server.port) as lane:
        alone = lane.send(echo("a") + echo("b"), 2)
        ended: asyncio.Future[list[Buffer]] = asyncio.get_running_loop().create_future()
        lane.post([echo("c"), pack([["NOSUCH"]]) + echo("d")], 3, lambda answer, error: ended.set_result(answer))
        last = lane.send(echo("e"))
        assert said(await alone) == [b"a", b"b"]
        (raw,) = await ended
        first, error, third = replies(raw)
        assert (first, third) == (b"c", b"d")
        assert isinstance(error, ReplyError)
        assert said(await last) == [b"e"]


async def test_parts_of_a_command_go_out_as_one(redis_server: RedisServer) -> None:
    blob = bytes(300_000)
    head, tail = b"*2\r\n$4\r\nECHO\r\n$300000\r\n", b"\r\n"
    async with lane_to(redis_server.port) as lane:
        ended: asyncio.Future[list[Buffer]] = asyncio.get_running_loop().create_future()
        lane.post([head, memoryview(blob), tail], 1, lambda answer, error: ended.set_result(answer))
        assert said(await ended) == [blob]


async def test_what_is_pushed_leaves_before_the_turn_ends() -> None:
    seen = asyncio.Queue[bytes]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            seen.put_nowait(data)

    async with fake(talk) as lane:
        first = lane.send(b"1")
        lane.push()
        lane.push()
        second = lane.send(b"2")
        third = lane.send(b"3")
        lane.close("that was all")
        assert await seen.get() == b"1"
        for call, kind in ((first, LaneLost), (second, LaneDown), (third, LaneDown)):
            with pytest.raises(kind, match="that was all"):
                await call


async def test_who_posted_hears_of_a_loss_when_the_turn_is_over(redis_server: RedisServer) -> None:
    heard: list[tuple[list[Buffer], StoreError | None]] = []
    async with lane_to(redis_server.port) as lane:
        lane.post([echo("a")], 1, lambda answer, error: heard.append((answer, error)))
        lane.push()
        lane.post([echo("b")], 1, lambda answer, error: heard.append((answer, error)))
        lane.close("gone")
        with pytest.raises(LaneDown, match="gone"):
            lane.post([echo("c")], 1, lambda answer, error: heard.append((answer, error)))
        lane.push()
        assert not heard
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert [(answer, type(error)) for answer, error in heard] == [([], LaneLost), ([], LaneDown)]


async def test_an_error_is_a_reply(redis_server: RedisServer) -> None:
    async with lane_to(redis_server.port) as lane:
        (raw,) = await lane.send(pack([["NOSUCH"]]))
        assert bytes(raw[:4]) == b"-ERR"


async def test_who_gives_up_leaves_the_others_in_order(redis_server: RedisServer) -> None:
    async with lane_to(redis_server.port) as lane:
        calls = [lane.send(echo(f"{n}")) for n in range(3)]
        calls[1].cancel()
        assert said(await calls[0]) == [b"0"]
        assert said(await calls[2]) == [b"2"]


async def test_all_that_is_sent_in_one_turn_leaves_in_one_write() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1 << 16))
        writer.write(b"+OK\r\n" * 100)

    async with fake(talk) as lane:
        await asyncio.gather(*(lane.send(echo("x")) for _ in range(100)))
    assert seen == [echo("x") * 100]


@pytest.mark.parametrize("answered", [0, 1, 7])
async def test_a_cut_gives_nobody_the_reply_of_another(answered: int) -> None:
    """F31: replies up to the cut go where they belong, all other outcomes are unknown."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"last\r\n")
        writer.write(b"".join(b":%d\r\n" % n for n in range(answered)) + b":12")  # and half of one
        writer.write_eof()

    async with fake(talk) as lane:
        calls = [lane.send(echo(f"{n}")) for n in range(9)] + [lane.send(echo("last"))]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert [reply(each[0]) for each in done[:answered] if isinstance(each, list)] == list(range(answered))
        assert all(isinstance(each, LaneLost) for each in done[answered:])
        with pytest.raises(LaneDown, match="closed the connection"):
            lane.send(echo("late"))


async def test_a_reply_cut_in_the_middle_by_a_real_proxy(redis_server: RedisServer, proxy: RedisProxy) -> None:
    proxy.cut_reply(b"ECHO", 3)
    async with lane_to(proxy.port) as lane:
        calls = [lane.send(pack([["INCR", "n"]])), lane.send(echo("x")), lane.send(pack([["INCR", "n"]]))]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(done[0], list)
        assert isinstance(done[1], LaneLost)
        assert isinstance(done[2], LaneLost)
    assert int(redis_server.call("GET", "n")) in (1, 2)


async def test_a_server_that_pauses_is_given_up_and_carries_it_out_later(redis_server: RedisServer) -> None:
    """F11: too late is not the same as not at all."""
    async with lane_to(redis_server.port, timeout=0.2) as lane:
        redis_server.pause()
        with pytest.raises(LaneLost, match=r"did not answer within 0\.2 s"):
            await lane.send(pack([["SET", "k", "v"]]))
        assert not lane.up
        redis_server.resume()
    while redis_server.call("GET", "k") is None:
        pass
    assert redis_server.call("GET", "k") == b"v"


async def test_what_has_not_left_yet_was_not_sent(redis_server: RedisServer) -> None:
    async with lane_to(redis_server.port) as lane:
        sent = lane.send(echo("sent"))
        await asyncio.sleep(0)
        kept = lane.send(echo("kept"))
        lane.close("enough")
        with pytest.raises(LaneLost, match="enough"):
            await sent
        with pytest.raises(LaneDown, match="enough"):
            await kept


@pytest.mark.parametrize(
    ("said", "words"),
    [(b"+OK\r\n+OK\r\n", "answered more than it was asked"), (b"HTTP/1.1 400\r\n", "does not speak Redis' protocol")],
)
async def test_a_server_that_says_what_it_must_not(said: bytes, words: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(said)

    async with fake(talk) as lane:
        call = lane.send(echo("x"))
        await asyncio.wait([call])
        while lane.up:
            await asyncio.sleep(0)
        with pytest.raises(LaneDown, match=words):
            lane.send(echo("y"))
        if call.exception() is not None:
            assert isinstance(call.exception(), LaneLost)


async def test_a_server_that_takes_nothing_is_sent_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "UNSENT_LIMIT", 64 << 20)
    take = asyncio.Event()
    taken = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await take.wait()
        left = 60 << 20
        while left > 0:
            left -= len(await reader.read(1 << 20))
        taken.set()
        await reader.read()

    async with fake(talk) as lane:
        call = lane.send(bytes(60 << 20))
        for _ in range(2):  # gathered, and then given to the transport
            with pytest.raises(LaneDown, match="does not take what it is sent: 64 MiB wait"):
                lane.send(bytes(8 << 20))
            lane.push()
        take.set()
        await taken.wait()
        again = lane.send(bytes(8 << 20))
        lane.close("that was all")
        with pytest.raises(LaneDown, match="that was all"):
            await again
    with pytest.raises(LaneLost):
        await call


async def test_asking_goes_before_each_command() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1000))
        writer.write(b"+OK\r\n:7\r\n")
        await reader.read(1000)
        writer.write_eof()

    async with fake(talk) as lane:
        asking = Asking(lane)
        assert (asking.asking, lane.asking, asking.up) == (True, False, True)
        assert said(await asking.send(pack([["INCR", "n"]]))) == [7]
        with pytest.raises(LaneDown, match="TRYAGAIN the slot is moving"):
            asking.send(pack([["INCR", "n"], ["INCR", "n"]]), 2)
        with pytest.raises(LaneLost):
            await asking.send(pack([["INCR", "n"]]))
        with pytest.raises(LaneDown):
            asking.send(pack([["INCR", "n"]]))
    assert seen == [pack([["ASKING"], ["INCR", "n"]])]


async def test_a_password_that_is_wrong_or_missing(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(requirepass="right")
    endpoint = Endpoint("127.0.0.1", server.port)
    for who, words in (
        ("", "refuses CLIENT: NOAUTH"),
        (":wrong@", "refuses AUTH: WRONGPASS"),
        ("nobody:right@", "refuses AUTH: WRONGPASS"),
    ):
        with pytest.raises(LaneDown, match=words) as refused:
            await connect(parse_url(f"redis://{who}127.0.0.1"), endpoint, None)
        assert "right" not in refused.value.detail
    lane = await connect(parse_url("redis://:right@127.0.0.1/1"), endpoint, None)
    assert said(await lane.send(pack([["CLIENT", "GETNAME"]]))) == [b"korvet-fast"]
    lane.close("the test is over")


async def test_nobody_there_and_nobody_who_answers(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    url = parse_url("redis://127.0.0.1?socket_timeout=0.2")
    endpoint = Endpoint("127.0.0.1", server.port)
    server.pause()
    with pytest.raises(LaneDown, match=r"did not answer within 0\.2 s"):
        await connect(url, endpoint, None)
    server.kill()
    with pytest.raises(LaneDown, match=f"cannot connect to {endpoint}: Connection refused"):
        await connect(url, endpoint, None)
    with pytest.raises(LaneDown, match="cannot connect to /no/such: No such file"):
        await connect(url, Endpoint("", 0, "/no/such"), None)


async def test_a_socket_of_the_file_system(
    start_redis: Callable[..., RedisServer], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("socket") / "redis.sock"
    start_redis(unixsocket=str(path))
    url = parse_url(f"unix://{path}?db=3")
    lane = await connect(url, url.nodes[0], None)
    assert said(await lane.send(echo("x"))) == [b"x"]
    lane.close("the test is over")
