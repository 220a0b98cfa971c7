"""A connection between two workers: questions and answers in any number, and how it ends."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from korvet_fast.errors import StoreError
from korvet_fast.store.workers.connection import Answer, Connection, ConnectionEnded
from korvet_fast.store.workers.messages import Fields, Message, Verb, pack_message


async def echo(verb: Verb, fields: Fields) -> Fields:
    """Answers with what it is asked, later ones first."""
    await asyncio.sleep(0.001 * (len(fields) % 7))
    if verb is Verb.LOAD:
        raise StoreError("no such key")
    if verb is Verb.VERSION:
        raise ValueError("nonsense")
    if verb is Verb.RELEASE:
        raise RuntimeError("a bug")
    return fields


@asynccontextmanager
async def connected(answer: Answer = echo) -> AsyncIterator[tuple[Connection, Connection, socket.socket]]:
    """Two ends that are being run, and the socket of the second one."""
    ends, running = [], []
    sockets = socket.socketpair()
    for each in sockets:
        reader, writer = await asyncio.open_connection(sock=each)
        ends.append(Connection(reader, writer, answer))
        running.append(asyncio.create_task(ends[-1].run()))
    try:
        yield ends[0], ends[1], sockets[1]
    finally:
        for end in ends:
            end.close()
        await asyncio.wait(running)


async def test_both_sides_ask_at_the_same_time() -> None:
    async with connected() as (one, two, _):
        asked = [[b"%d" % number, None, b"", *[b"x"] * (number % 5)] for number in range(200)]
        answers = await asyncio.gather(*(end.ask(Verb.SAVE, *fields) for end in (one, two) for fields in asked))
        assert answers == asked + asked


async def test_a_large_answer_comes_in_parts() -> None:
    async with connected() as (one, _, _):
        fields = [bytes([number]) * (300_000 * number) for number in range(12)]
        assert await one.ask(Verb.SCAN, *fields) == fields


@pytest.mark.parametrize(
    ("verb", "text"), [(Verb.LOAD, "no such key"), (Verb.VERSION, "nonsense"), (Verb.RELEASE, "RELEASE: .*a bug")]
)
async def test_a_failure_is_told(verb: Verb, text: str) -> None:
    async with connected() as (one, _, _):
        with pytest.raises(StoreError, match=text):
            await one.ask(verb)
        assert await one.ask(Verb.SAVE, b"x") == [b"x"]


async def test_an_end_in_good_order_answers_what_is_being_done_and_does_nothing_more() -> None:
    began, done = asyncio.Event(), []

    async def slow(_: Verb, fields: Fields) -> Fields:
        began.set()
        await asyncio.sleep(0.02)
        done.append(fields[0])
        return fields

    async with connected(slow) as (one, two, _):
        first = asyncio.create_task(one.ask(Verb.SAVE, b"1"))
        await began.wait()
        ending = asyncio.create_task(two.finish(60))
        await asyncio.sleep(0)
        second = asyncio.create_task(one.ask(Verb.SAVE, b"2"))
        assert await first == [b"1"]
        with pytest.raises(ConnectionEnded) as ended:
            await second
        assert ended.value.undone
        await ending
        assert done == [b"1"]
        with pytest.raises(ConnectionEnded):
            await one.ask(Verb.SAVE, b"3")


async def test_who_ends_in_good_order_leaves_it_to_the_other_side_to_close() -> None:
    """Or its last messages could not be read by who is writing a question: the kernel throws them away then."""
    one, two = socket.socketpair()
    two.setblocking(False)
    with two:
        reader, writer = await asyncio.open_connection(sock=one)
        connection = Connection(reader, writer, echo)
        running = asyncio.create_task(connection.run())
        await connection.finish(60)
        loop = asyncio.get_running_loop()
        for number in range(3):
            await loop.sock_sendall(two, pack_message(Message(Verb.SAVE, number, [b"x"])))
            await asyncio.sleep(0.005)
        assert await loop.sock_recv(two, 1000) == pack_message(Message(Verb.GOODBYE, 0))
        assert not running.done()
        two.close()
        await running


async def never(_: Verb, __: Fields) -> Fields:
    await asyncio.sleep(600)
    return []


async def test_an_end_in_good_order_does_not_wait_for_ever() -> None:
    """Nor does it say that nothing was done: it may be, a moment later."""
    async with connected(never) as (one, two, _):
        asking = asyncio.create_task(one.ask(Verb.SAVE, b"1"))
        await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            await two.finish(0.01)
            with pytest.raises(ConnectionEnded) as ended:
                await asking
        assert not ended.value.undone


async def test_an_end_without_a_word_leaves_it_open_what_was_done() -> None:
    async with connected(never) as (one, two, _):
        asking = asyncio.create_task(one.ask(Verb.SAVE, b"1"))
        await asyncio.sleep(0.01)
        two.close()
        with pytest.raises(ConnectionEnded) as ended:
            await asking
        assert not ended.value.undone


async def test_what_is_no_message_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with connected() as (one, _, other):
        other.send(b"\0\0\0\5\x63\0\0\0\1")  # the verb 99
        with pytest.raises(ConnectionEnded):
            await one.ask(Verb.SAVE, bytes(1000))
        assert "what is no message: 99" in caplog.text


def test_nothing_is_written_where_the_loop_has_closed_the_transport_already() -> None:
    """uvloop raises then; the task that reads is told a turn later."""

    async def scenario() -> None:
        one, two = socket.socketpair()
        with two:
            reader, writer = await asyncio.open_connection(sock=one)
            connection = Connection(reader, writer, echo)
            running = asyncio.create_task(connection.run())
            await asyncio.sleep(0)
            writer.transport.abort()
            with pytest.raises(ConnectionEnded) as ended:
                await connection.ask(Verb.SAVE, b"key")
            assert ended.value.undone
            await connection.finish(60)
            await running

    uvloop.run(scenario())
