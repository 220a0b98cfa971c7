"""Our producer's transactions at Apache Kafka; a consumer with isolation.level=read_committed judges."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Consumer

from faults.producer_brokers import SmallKafka
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import (
    Cancelled,
    Outcome,
    ProducerFenced,
    TransactionError,
)
from pausable import wait_until_still
from producer_leftovers import run_clean

pytestmark = pytest.mark.timeout(600)
_numbers = count()
QUICK = {"request_timeout_ms": 2000, "retry_backoff_max_ms": 200}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallKafka]:
    with SmallKafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def topic() -> str:
    return f"transactions-{next(_numbers)}"


def read_committed(kafka: SmallKafka, topic: str) -> list[bytes]:
    """All values that are committed, when no transaction is open any more."""
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": topic, **settings})
    consumer.subscribe([topic])
    found: list[bytes] = []
    ended: set[int] = set()
    while len(ended) < 3:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            ended.add(message.partition())
        else:
            found.append(message.value())
    consumer.close()
    return found


def run(work: Callable[[AsyncProducer], Awaitable[Any]], kafka: SmallKafka, topic: str, **settings: Any) -> list[bytes]:
    async def whole() -> None:
        async with AsyncProducer(kafka.address, transactional_id=topic, **QUICK, **settings) as p:
            await p.init_transactions()
            await work(p)

    run_clean(whole)
    return read_committed(kafka, topic)


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(kafka: SmallKafka, topic: str, compression: str) -> None:
    async def work(p: AsyncProducer) -> None:
        for number in range(4):
            p.begin_transaction()
            sent = [p.send(topic, b"%d-%d" % (number, n), key=b"%d" % n) for n in range(50)]
            sent.append(p.send(topic, b"%d-headers" % number, headers=[("a", b"1")]))
            await p.send_many(topic, None, [b"%d-row" % number])
            if number % 2:
                await p.flush()
                await p.abort_transaction()
            else:
                await p.commit_transaction()
            assert {each.outcome for each in sent} == {Outcome.DELIVERED}
        async with p.transaction():
            p.send(topic, b"last")
        async with p.transaction():
            pass  # of nothing

    found = run(work, kafka, topic, compression_type=compression)
    names = [*(b"%d" % n for n in range(50)), b"headers", b"row"]
    assert sorted(found) == sorted([b"%d-%s" % (number, name) for number in (0, 2) for name in names] + [b"last"])


def test_what_was_not_sent_is_withdrawn_by_an_abort(kafka: SmallKafka, topic: str) -> None:
    async def work(p: AsyncProducer) -> None:
        async with p.transaction():
            p.send(topic, b"first", partition=0)
        p.begin_transaction()
        sent = p.send(topic, b"withdrawn", partition=0)
        await p.abort_transaction()
        assert isinstance(sent.exception(), Cancelled)
        with pytest.raises(ValueError, match="mine"):
            async with p.transaction():
                await p.send(topic, b"aborted", partition=0)
                p.send(topic, b"withdrawn", partition=0)
                raise ValueError("mine")
        async with p.transaction():
            p.send(topic, b"second", partition=0)

    assert run(work, kafka, topic) == [b"first", b"second"]


def test_a_message_that_fails_fails_its_transaction(kafka: SmallKafka, topic: str) -> None:
    async def work(p: AsyncProducer) -> None:
        async with p.transaction():
            p.send(topic, b"first", partition=0)
        p.begin_transaction()
        p.send(topic, b"beside", partition=1)
        large = p.send(topic, os.urandom(1_100_000), partition=0)
        with pytest.raises(TransactionError, match=r"no commit: the transaction failed .*; abort it"):
            await p.commit_transaction()
        assert large.outcome is Outcome.NOT_WRITTEN
        with pytest.raises(TransactionError, match="no send: the transaction failed"):
            p.send(topic, b"late")
        await p.abort_transaction()
        async with p.transaction():
            p.send(topic, b"second", partition=0)

    assert run(work, kafka, topic, max_request_size=2_000_000) == [b"first", b"second"]


def test_who_is_fenced_writes_nothing_more(kafka: SmallKafka, topic: str) -> None:
    async def work(p: AsyncProducer) -> None:
        p.begin_transaction()
        await p.send(topic, b"of the fenced")
        async with AsyncProducer(kafka.address, transactional_id=topic, **QUICK) as other:
            await other.init_transactions()
            sent = p.send(topic, b"zombie")
            with pytest.raises((ProducerFenced, TransactionError)):
                await p.commit_transaction()
            with pytest.raises(ProducerFenced, match="close this one"):
                await p.abort_transaction()
            with pytest.raises(ProducerFenced, match="close this one"):
                p.send(topic, b"zombie")
            assert sent.outcome is not None
            async with other.transaction():
                other.send(topic, b"of the other")

    assert run(work, kafka, topic) == [b"of the other"]


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_the_broker_is_killed_in_the_middle(kafka: SmallKafka, topic: str, ending: str) -> None:
    async def work(p: AsyncProducer) -> None:
        async with p.transaction():
            p.send(topic, b"before", partition=0)
        p.begin_transaction()
        sent = [p.send(topic, b"%d" % n, partition=0) for n in range(20)]
        await p.flush()
        await asyncio.to_thread(kafka.kill)
        sent += [p.send(topic, b"%d" % n, partition=0) for n in range(20, 40)]
        starting = asyncio.create_task(asyncio.to_thread(kafka.start))
        if ending == "commit":
            await p.commit_transaction()
            assert {each.outcome for each in sent} == {Outcome.DELIVERED}
        else:
            await p.abort_transaction()
        await starting
        async with p.transaction():
            p.send(topic, b"after", partition=0)

    between = [b"%d" % n for n in range(40)] if ending == "commit" else []
    assert run(work, kafka, topic) == [b"before", *between, b"after"]


def test_a_commit_without_an_answer_stays_unknown_until_the_producer_begins_anew(kafka: SmallKafka, topic: str) -> None:
    async def work(p: AsyncProducer) -> None:
        p.begin_transaction()
        await p.send(topic, b"unknown", partition=0)
        os.kill(kafka.pid, signal.SIGSTOP)
        wait_until_still(kafka.pid)  # its threads stop one after the other
        try:
            with pytest.raises(TransactionError, match="whether the commit was carried out is not known") as caught:
                await p.commit_transaction()
        finally:
            os.kill(kafka.pid, signal.SIGCONT)
        assert caught.value.outcome is Outcome.UNKNOWN
        with pytest.raises(TransactionError, match="call init_transactions first"):
            p.begin_transaction()
        await p.init_transactions()
        async with p.transaction():
            p.send(topic, b"known", partition=0)

    # Longer than a busy machine takes for what is sent before and after, shorter than Kafka waits for its broker (9 s).
    found = run(work, kafka, topic, delivery_timeout_ms=8000)
    assert found in ([b"known"], [b"unknown", b"known"])
