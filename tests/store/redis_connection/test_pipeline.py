"""The hot connection: order, loss, silence, and what a server may say that it must not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast._native import ReplyError, encode_commands, parse_replies, parse_reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection import pipeline as pipeline_module
from korvet_fast.store.redis.connection.clients import Clients
from korvet_fast.store.redis.connection.connect import connect
from korvet_fast.store.redis.connection.pipeline import Asking, Pipeline, PipelineDown, PipelineLost
from korvet_fast.store.redis.connection.url import RedisAddress, parse_url
from korvet_fast.store.types import Spent
from korvet_fast.types import Buffer
from redis_server import RedisServer

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def pipeline_to(port: int, timeout: float = 5.0) -> AsyncIterator[Pipeline]:
    """A pipeline, closed at the end."""
    url = parse_url(f"redis://127.0.0.1:{port}?socket_timeout={timeout}")
    pipeline = await connect(url, url.nodes[0], None)
    try:
        yield pipeline
    finally:
        pipeline.close("the test is over")


@asynccontextmanager
async def fake(talk: Talk) -> AsyncIterator[Pipeline]:
    """A pipeline to a server that takes the introduction and goes on as `talk` says."""
    over, gone = asyncio.Event(), asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"EXEC\r\n")
        writer.write(b"+OK\r\n+OK\r\n*0\r\n")
        await talk(reader, writer)
        await over.wait()
        writer.transport.abort()
        gone.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        async with pipeline_to(server.sockets[0].getsockname()[1]) as pipeline:
            yield pipeline
    finally:
        over.set()
        await gone.wait()
        server.close()
        await asyncio.sleep(0)


def echo(text: str) -> bytes:
    return encode_commands([["ECHO", text]])


def said(raw: list[Buffer]) -> list[object]:
    return [parse_reply(each) for each in raw]


async def test_replies_come_in_the_order_of_the_calls(redis_server: RedisServer) -> None:
    async with pipeline_to(redis_server.port) as pipeline:
        calls = [pipeline.send(echo(f"{n}") + echo(f"{n}b"), 2) for n in range(1000)]
        for number, call in enumerate(calls):
            assert said(await call) == [f"{number}".encode(), f"{number}b".encode()]


async def test_calls_are_counted_with_their_time_once_they_are_answered(redis_server: RedisServer) -> None:
    url, spent = parse_url(redis_server.url), Spent()
    pipeline = await connect(url, url.nodes[0], None, round_trips=spent)
    before = spent.count
    for _ in range(3):
        took = spent.seconds
        await pipeline.send(echo("a") + echo("b"), 2)
        assert spent.seconds > took
    assert spent.count == before + 3
    lost = pipeline.send(echo("c"))
    pipeline.close("the test is over")
    with pytest.raises(StoreError):
        await lost
    assert spent.count == before + 3


async def test_replies_may_come_as_one_buffer(redis_server: RedisServer) -> None:
    async with pipeline_to(redis_server.port) as pipeline:
        alone = pipeline.send(echo("a") + echo("b"), 2)
        ended: asyncio.Future[list[Buffer]] = asyncio.get_running_loop().create_future()
        pipeline.post(
            [echo("c"), encode_commands([["NOSUCH"]]) + echo("d")], 3, lambda answer, error: ended.set_result(answer)
        )
        last = pipeline.send(echo("e"))
        assert said(await alone) == [b"a", b"b"]
        (raw,) = await ended
        first, error, third = parse_replies(raw)
        assert (first, third) == (b"c", b"d")
        assert isinstance(error, ReplyError)
        assert said(await last) == [b"e"]


async def test_parts_of_a_command_go_out_as_one(redis_server: RedisServer) -> None:
    blob = bytes(300_000)
    head, tail = b"*2\r\n$4\r\nECHO\r\n$300000\r\n", b"\r\n"
    async with pipeline_to(redis_server.port) as pipeline:
        ended: asyncio.Future[list[Buffer]] = asyncio.get_running_loop().create_future()
        pipeline.post([head, memoryview(blob), tail], 1, lambda answer, error: ended.set_result(answer))
        assert said(await ended) == [blob]


async def test_what_is_pushed_leaves_before_the_turn_ends() -> None:
    seen = asyncio.Queue[bytes]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            seen.put_nowait(data)

    async with fake(talk) as pipeline:
        first = pipeline.send(b"1")
        pipeline.push()
        pipeline.push()
        second = pipeline.send(b"2")
        third = pipeline.send(b"3")
        pipeline.close("that was all")
        assert await seen.get() == b"1"
        for call, kind in ((first, PipelineLost), (second, PipelineDown), (third, PipelineDown)):
            with pytest.raises(kind, match="that was all"):
                await call


async def test_who_posted_hears_of_a_loss_when_the_turn_is_over(redis_server: RedisServer) -> None:
    ended_with: list[tuple[list[Buffer], StoreError | None]] = []
    async with pipeline_to(redis_server.port) as pipeline:
        pipeline.post([echo("a")], 1, lambda answer, error: ended_with.append((answer, error)))
        pipeline.push()
        pipeline.post([echo("b")], 1, lambda answer, error: ended_with.append((answer, error)))
        pipeline.close("gone")
        with pytest.raises(PipelineDown, match="gone"):
            pipeline.post([echo("c")], 1, lambda answer, error: ended_with.append((answer, error)))
        pipeline.push()
        assert not ended_with
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert [(answer, type(error)) for answer, error in ended_with] == [([], PipelineLost), ([], PipelineDown)]


async def test_an_error_is_a_reply(redis_server: RedisServer) -> None:
    async with pipeline_to(redis_server.port) as pipeline:
        (raw,) = await pipeline.send(encode_commands([["NOSUCH"]]))
        assert bytes(raw[:4]) == b"-ERR"


async def test_who_gives_up_leaves_the_others_in_order(redis_server: RedisServer) -> None:
    async with pipeline_to(redis_server.port) as pipeline:
        calls = [pipeline.send(echo(f"{n}")) for n in range(3)]
        calls[1].cancel()
        assert said(await calls[0]) == [b"0"]
        assert said(await calls[2]) == [b"2"]


async def test_all_that_is_sent_in_one_turn_leaves_in_one_write() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1 << 16))
        writer.write(b"+OK\r\n" * 100)

    async with fake(talk) as pipeline:
        await asyncio.gather(*(pipeline.send(echo("x")) for _ in range(100)))
    assert seen == [echo("x") * 100]


@pytest.mark.parametrize("answered", [0, 1, 7])
async def test_a_cut_gives_nobody_the_reply_of_another(answered: int) -> None:
    """F31: replies up to the cut go where they belong, all other outcomes are unknown."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"last\r\n")
        writer.write(b"".join(b":%d\r\n" % n for n in range(answered)) + b":12")  # and half of one
        writer.write_eof()

    async with fake(talk) as pipeline:
        calls = [pipeline.send(echo(f"{n}")) for n in range(9)] + [pipeline.send(echo("last"))]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert [parse_reply(each[0]) for each in done[:answered] if isinstance(each, list)] == list(range(answered))
        assert all(isinstance(each, PipelineLost) for each in done[answered:])
        with pytest.raises(PipelineDown, match="closed the connection"):
            pipeline.send(echo("late"))


async def test_a_reply_cut_in_the_middle_by_a_real_proxy(redis_server: RedisServer, proxy: RedisProxy) -> None:
    proxy.cut_reply(b"ECHO", 3)
    async with pipeline_to(proxy.port) as pipeline:
        calls = [
            pipeline.send(encode_commands([["INCR", "n"]])),
            pipeline.send(echo("x")),
            pipeline.send(encode_commands([["INCR", "n"]])),
        ]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(done[0], list)
        assert isinstance(done[1], PipelineLost)
        assert isinstance(done[2], PipelineLost)
    assert int(redis_server.call("GET", "n")) in (1, 2)


async def test_a_server_that_pauses_is_given_up_and_carries_it_out_later(redis_server: RedisServer) -> None:
    """F11: too late is not the same as not at all."""
    async with pipeline_to(redis_server.port) as pipeline:
        redis_server.pause()
        with pytest.raises(PipelineLost, match=r"did not answer within 5 s"):
            await pipeline.send(encode_commands([["SET", "k", "v"]]))
        assert not pipeline.up
        redis_server.resume()
    while redis_server.call("GET", "k") is None:
        pass
    assert redis_server.call("GET", "k") == b"v"


async def test_what_has_not_left_yet_was_not_sent(redis_server: RedisServer) -> None:
    async with pipeline_to(redis_server.port) as pipeline:
        sent = pipeline.send(echo("sent"))
        await asyncio.sleep(0)
        kept = pipeline.send(echo("kept"))
        pipeline.close("enough")
        with pytest.raises(PipelineLost, match="enough"):
            await sent
        with pytest.raises(PipelineDown, match="enough"):
            await kept


@pytest.mark.parametrize(
    ("said", "words"),
    [(b"+OK\r\n+OK\r\n", "answered more than it was asked"), (b"HTTP/1.1 400\r\n", "does not speak Redis' protocol")],
)
async def test_a_server_that_says_what_it_must_not(said: bytes, words: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(said)

    async with fake(talk) as pipeline:
        call = pipeline.send(echo("x"))
        await asyncio.wait([call])
        while pipeline.up:
            await asyncio.sleep(0)
        with pytest.raises(PipelineDown, match=words):
            pipeline.send(echo("y"))
        if call.exception() is not None:
            assert isinstance(call.exception(), PipelineLost)


async def test_a_server_that_takes_nothing_is_sent_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "UNSENT_LIMIT", 64 << 20)
    take = asyncio.Event()
    taken = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await take.wait()
        left = 62 << 20
        while left > 0:
            left -= len(await reader.read(1 << 20))
        taken.set()
        await reader.read()

    async with fake(talk) as pipeline:
        call = pipeline.send(bytes(62 << 20))  # some of it goes into the buffers of the kernel
        for _ in range(2):  # gathered, and then given to the transport
            with pytest.raises(PipelineDown, match="does not take what it is sent: 64 MiB wait"):
                pipeline.send(bytes(64 << 20))
            pipeline.push()
        take.set()
        await taken.wait()
        again = pipeline.send(bytes(8 << 20))
        pipeline.close("that was all")
        with pytest.raises(PipelineDown, match="that was all"):
            await again
    with pytest.raises(PipelineLost):
        await call


async def test_asking_goes_before_each_command() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1000))
        writer.write(b"+OK\r\n:7\r\n")
        await reader.read(1000)
        writer.write_eof()

    async with fake(talk) as pipeline:
        asking = Asking(pipeline)
        assert (asking.asking, pipeline.asking, asking.up) == (True, False, True)
        assert said(await asking.send(encode_commands([["INCR", "n"]]))) == [7]
        with pytest.raises(PipelineDown, match="TRYAGAIN the slot is moving"):
            asking.send(encode_commands([["INCR", "n"], ["INCR", "n"]]), 2)
        with pytest.raises(PipelineLost):
            await asking.send(encode_commands([["INCR", "n"]]))
        with pytest.raises(PipelineDown):
            asking.send(encode_commands([["INCR", "n"]]))
    assert seen == [encode_commands([["ASKING"], ["INCR", "n"]])]


async def test_a_password_that_is_wrong_or_missing(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(requirepass="right")
    endpoint = RedisAddress("127.0.0.1", server.port)
    for who, words in (
        ("", r"Redis at 127.0.0.1:\d+ refuses CLIENT: NOAUTH Authentication required \(name a user and the file"),
        (":wrong@", "refuses AUTH: WRONGPASS"),
        ("nobody:right@", "refuses AUTH: WRONGPASS"),
    ):
        with pytest.raises(PipelineDown, match=words) as refused:
            await connect(parse_url(f"redis://{who}127.0.0.1"), endpoint, None)
        assert "right" not in refused.value.detail
    pipeline = await connect(parse_url("redis://:right@127.0.0.1/1"), endpoint, None)
    assert said(await pipeline.send(encode_commands([["CLIENT", "GETNAME"]]))) == [b"korvet-fast"]
    pipeline.close("the test is over")


async def test_a_password_that_is_changed(start_redis: Callable[..., RedisServer], tmp_path: Path) -> None:
    """The file of a password is read again for each connection, so that nobody has to restart a broker."""
    server = start_redis(requirepass="first")
    endpoint = RedisAddress("127.0.0.1", server.port)
    file = tmp_path / "password"
    file.write_text("first\n")
    url = parse_url(f"redis://127.0.0.1?password_file={file}")
    pipeline = await connect(url, endpoint, None)
    await pipeline.send(encode_commands([["CONFIG", "SET", "requirepass", "second"]]))
    pipeline.close("it begins anew")
    clients = Clients(url)
    with pytest.raises(StoreError, match="invalid username-password pair"):
        await clients.call(endpoint, "PING")
    with pytest.raises(PipelineDown, match=f"put the user's password into {file}"):
        await connect(url, endpoint, None)
    file.unlink()
    with pytest.raises(PipelineDown, match="cannot be read: No such file or directory; the password from before"):
        await connect(url, endpoint, None)
    file.write_text("second\n")
    (await connect(url, endpoint, None)).close("the test is over")
    assert await clients.call(endpoint, "PING") == b"PONG"
    await clients.close()


async def test_nobody_there_and_nobody_who_answers(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    url = parse_url("redis://127.0.0.1?socket_timeout=2")  # and time enough to connect
    endpoint = RedisAddress("127.0.0.1", server.port)
    server.pause()
    with pytest.raises(PipelineDown, match=r"did not answer within 2 s$"):  # and no word about TLS
        await connect(url, endpoint, None)
    server.kill()
    url = parse_url("redis://127.0.0.1")  # and time enough to be told
    refused = rf"cannot connect to Redis at {endpoint}: Connection refused \(is it running there\?\)$"
    with pytest.raises(PipelineDown, match=refused):
        await connect(url, endpoint, None)
    with pytest.raises(PipelineDown, match="cannot connect to Redis at /no/such: No such file"):
        await connect(url, RedisAddress("", 0, "/no/such"), None)


async def test_a_socket_of_the_file_system(
    start_redis: Callable[..., RedisServer], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("socket") / "redis.sock"
    start_redis(unixsocket=str(path))
    url = parse_url(f"unix://{path}?db=3")
    pipeline = await connect(url, url.nodes[0], None)
    assert said(await pipeline.send(echo("x"))) == [b"x"]
    pipeline.close("the test is over")


@pytest.mark.parametrize("word", ["multi", "exec"])
async def test_a_user_without_transactions_is_refused(redis_server: RedisServer, word: str) -> None:
    redis_server.call("ACL", "SETUSER", "halved", "on", ">secret", "~*", "+@all", f"-{word}")
    url = parse_url(f"redis://halved:secret@127.0.0.1:{redis_server.port}")
    with pytest.raises(StoreError, match=f"refuses {word.upper()}: "):
        await connect(url, url.nodes[0], None)
