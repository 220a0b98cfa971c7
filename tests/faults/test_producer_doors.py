"""kill -9 of the broker under the producer by text and by Kafka 0.7, which send nothing twice: no outcome lies."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from history import History, Sent, read_value
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Delivery, Outcome
from producer_leftovers import run_clean
from raw_connection import connect, read_places
from redis_server import PROGRAMS, RedisServer, find_program, free_port

KILLS = 4
STEP = 60  # messages that end well before a kill, and after the last
STILL = 0.3  # seconds of SIGSTOP before a kill: what is sent then is never read
PATIENCE = 300.0  # seconds for what happens some time
TOPIC = "doors"
SETTINGS = {"request_timeout_ms": 2000, "retry_backoff_max_ms": 200, "batch_num_messages": 7}


@pytest.fixture(params=["files", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store that outlives its broker."""
    if request.param == "files":
        yield f"file:{tmp_path / 'data'}"
        return
    with RedisServer(find_program(PROGRAMS[0]), tmp_path / "redis", appendonly="yes") as redis:
        yield redis.url


async def send_until(stop: asyncio.Event, producer: AsyncProducer) -> list[Delivery]:
    """Send `w:number` to the topic's one partition; all of it has ended afterwards."""
    sent: list[Delivery] = []
    numbers = count()
    while not stop.is_set():
        sent += [producer.send(TOPIC, b"w:%d" % next(numbers)) for _ in range(3)]
        await asyncio.sleep(0.002)
    async with asyncio.timeout(PATIENCE):
        await producer.flush()
    return sent


async def await_more(producer: AsyncProducer) -> None:
    target = producer.metrics().delivered + STEP
    async with asyncio.timeout(PATIENCE):
        while producer.metrics().delivered < target:
            await asyncio.sleep(0.01)


async def await_unread(producer: AsyncProducer) -> None:
    """Until something is on its way to a stopped broker, or, where nothing is answered, is told to be."""
    told = producer.metrics().delivered
    async with asyncio.timeout(PATIENCE):
        while not producer.metrics().requests_in_flight and producer.metrics().delivered == told:
            await asyncio.sleep(0.01)


def send_under_kills(broker: BrokerProcess, address: str) -> tuple[list[Delivery], History, set[Sent]]:
    """The messages, their history without the delivered ones, and what the log has of them; every rule was checked."""
    history = History()

    async def work() -> tuple[list[Delivery], list[tuple[int, bytes]]]:
        stop = asyncio.Event()
        async with AsyncProducer(address, **SETTINGS) as producer:
            sending = asyncio.create_task(send_until(stop, producer))
            for number in range(KILLS):
                await await_more(producer)
                if number % 2:
                    broker.pause()
                    await asyncio.sleep(STILL)
                    await await_unread(producer)
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
            await await_more(producer)
            stop.set()
            sent = await sending
        async with connect(broker.port) as client:
            return sent, await read_places(client, TOPIC)

    with broker:
        sent, rows = run_clean(work)
    for number, delivery in enumerate(sent):
        value = Sent("w", number)
        history.note_sent(value, 0, once=True)
        if delivery.outcome is Outcome.NOT_WRITTEN:
            history.note_refused(value, str(delivery.exception()))
        elif delivery.outcome is Outcome.DELIVERED and delivery.result().confirmed:
            history.note_acknowledged(value, (0, delivery.result().offset))
    history.check({0: rows}, never=True)
    return sent, history, {read_value(value) for _, value in rows}


@pytest.mark.timeout(900)
def test_text_says_delivered_only_of_what_is_there(tmp_path: Path, store: str) -> None:
    address = f"text://127.0.0.1:{free_port()}"
    sent, history, _ = send_under_kills(BrokerProcess(tmp_path, store=store, arguments=("--listen", address)), address)
    outcomes = [each.outcome for each in sent]
    assert len(history.acknowledged) == outcomes.count(Outcome.DELIVERED) >= STEP * (KILLS + 1)
    assert outcomes.count(Outcome.UNKNOWN) >= KILLS // 2, "what a stopped broker was sent has no answer"
    assert None not in outcomes


@pytest.mark.timeout(900)
def test_kafka_07_never_says_more_than_sent(tmp_path: Path, store: str) -> None:
    address = f"legacy://127.0.0.1:{free_port()}"
    broker = BrokerProcess(tmp_path, store=store, arguments=("--listen", address))
    sent, history, there = send_under_kills(broker, address)
    told = {Sent("w", number) for number, each in enumerate(sent) if each.outcome is Outcome.DELIVERED}
    assert not history.acknowledged, "nobody confirms anything"
    assert {each.result().offset for each in sent if each.outcome is Outcome.DELIVERED} == {-1}
    assert len(told & there) >= STEP
    assert told - there, "what a stopped broker was sent is lost: so none of them may be called stored"
    assert all(each.outcome for each in sent)
