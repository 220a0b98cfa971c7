"""Messages that failed and whose results nobody reads: the log tells them, with their partition and why."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer, Producer
from korvet_fast.client.producer import DeliveryFailed, Expired, Outcome, RecordMetadata, unread_failures
from korvet_fast.client.producer.unread_failures import UnreadFailures
from lying_broker import LyingBroker
from redis_server import free_port

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
INVALID_RECORD = 87
REASON = "the partitions of topic 't' were not found within delivery.timeout.ms (0.02 s)"
LOST = "3 messages were not delivered (failed, not written), and nobody has read the result: "
SOON = {"delivery_timeout_ms": 20}


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines so far about results that nobody has read."""
    caplog.set_level(logging.WARNING)
    return lambda: [each.getMessage() for each in caplog.records if each.name == unread_failures.__name__]


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody listens."""
    return f"127.0.0.1:{free_port()}"


Lines = Callable[[], list[str]]


@pytest.mark.parametrize("end", ["flush", "close", "abort", "with"])
def test_what_nobody_reads_of_the_blocking_producer_is_told(run: Run, nowhere: str, warnings: Lines, end: str) -> None:
    """It failed in silence."""
    p = Producer(nowhere, **SOON if end != "abort" else {})
    for _ in range(3):
        p.send("t", b"x")
    {"flush": p.flush, "close": p.close, "abort": p.abort, "with": lambda: p.__exit__(None, None, None)}[end]()
    (line,) = warnings()
    assert line.startswith(f"topic 't': {LOST}{REASON if end != 'abort' else 'the producer was closed'}")
    p.close()
    assert warnings() == [line], "once"


@pytest.mark.parametrize("end", ["flush", "close", "abort", "with"])
def test_what_nobody_awaits_of_the_asyncio_producer_is_told(run: Run, nowhere: str, warnings: Lines, end: str) -> None:
    """Of many messages that failed in ten seconds it told the first one only."""

    async def work() -> None:
        p = AsyncProducer(nowhere, **SOON if end != "abort" else {})
        for _ in range(3):
            p.send("t", b"x")
            await asyncio.sleep(0)  # each is a run of its own
        calls = {"flush": p.flush, "close": p.close, "abort": p.abort, "with": lambda: p.__aexit__(None, None, None)}
        await calls[end]()
        (line,) = warnings()
        assert line.startswith(f"topic 't': {LOST}{REASON if end != 'abort' else 'the producer was closed'}")
        await p.close()
        assert warnings() == [line], "once"

    run(work)


def read_result(result: "Future[RecordMetadata]") -> None:
    with pytest.raises(Expired):
        result.result()


@pytest.mark.parametrize("read", [read_result, lambda result: result.exception()], ids=["result", "exception"])
def test_what_was_read_of_the_blocking_producer_is_not_told(
    run: Run, nowhere: str, warnings: Lines, read: Callable[["Future[RecordMetadata]"], Any]
) -> None:
    with Producer(nowhere, **SOON) as p:
        results = [p.send("t", b"x") for _ in range(4)]
        for result in results[1:]:
            read(result)
            read(result)
        results[0].add_done_callback(lambda result: result.exception())
    assert warnings() == []


def test_what_was_read_of_the_asyncio_producer_is_not_told(run: Run, nowhere: str, warnings: Lines) -> None:
    async def work() -> None:
        async with AsyncProducer(nowhere, **SOON) as p:
            sent = [p.send("t", b"x") for _ in range(6)]
            assert sent.pop(1).cancel(), "on its caller's wish"
            awaited = asyncio.gather(*sent[:2], return_exceptions=True)
            await p.flush()
            assert {type(each) for each in await awaited} == {Expired}
            assert len(warnings()) == 1, "three are not read yet"
            p.send("t", b"x")
            for delivery in sent:
                assert isinstance(delivery.exception(), Expired)
        assert len(warnings()) == 2
        assert "topic 't': a message was not delivered" in warnings()[1]

    run(work)


def test_it_is_told_without_flush_or_close(
    run: Run, nowhere: str, warnings: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread_failures, "_PATIENCE", 0.1)

    async def work() -> None:
        p = AsyncProducer(nowhere, **SOON)
        for _ in range(2):
            p.send("t", b"x")
        while not warnings():
            await asyncio.sleep(0.01)
        assert "2 messages were not delivered" in warnings()[0]
        await p.abort()

    run(work)


@pytest.mark.parametrize("blocking", [False, True])
def test_it_is_told_which_partition_and_why(run: Run, warnings: Lines, blocking: bool) -> None:
    broker = LyingBroker()
    broker.row = {"error_code": INVALID_RECORD}

    def send_blocking(address: str) -> None:
        with Producer(address, linger_ms=60_000) as p:
            for _ in range(3):
                p.send("t", b"x")

    async def work() -> None:
        async with broker.run() as address:
            if blocking:
                with ThreadPoolExecutor(1) as pool:
                    await asyncio.get_running_loop().run_in_executor(pool, send_blocking, address)
                return
            async with AsyncProducer(address, linger_ms=60_000) as p:
                for _ in range(3):
                    p.send("t", b"x")

    run(work)
    (line,) = warnings()
    assert line.startswith(f"partition 0 of topic 't': {LOST}partition 0 of topic 't': 3 messages: ")
    assert "(INVALID_RECORD)" in line


def test_of_many_partitions_ten_are_told_each(run: Run, warnings: Lines) -> None:
    async def work() -> None:
        failures = UnreadFailures()
        error = DeliveryFailed("reason", Outcome.UNKNOWN)
        for index in range(15):
            found = failures.add("t", index, error, {0, 1, 2})
            if index == 0:
                for place in (0, 1, 1, 2):
                    found.read(place)
        failures.tell()
        found.read(0)  # too late
        failures.add("t", 14, error, {0})
        failures.tell()

    run(work)
    lines = warnings()
    assert [line.split(":")[0] for line in lines[:10]] == [f"partition {n} of topic 't'" for n in range(1, 11)]
    assert lines[10] == "12 more messages were not delivered, to 4 other partitions"
    assert lines[11:] == [
        "partition 14 of topic 't': a message was not delivered (unknown), and nobody has read the result: reason"
    ]
