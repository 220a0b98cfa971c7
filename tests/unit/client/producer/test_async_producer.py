"""The producer with sockets, against a broker of ours on files."""

import asyncio
import logging
from array import array
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer, Producer
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import Consumer, Record
from korvet_fast.client.producer import (
    BufferFull,
    Cancelled,
    DeliveryFailed,
    Expired,
    Message,
    Outcome,
    ProducerClosed,
    RowsFailed,
)
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.record_batch import ProducerBatch
from korvet_fast.endpoint import read_bootstrap
from redis_server import free_port

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
_numbers = count()


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody listens."""
    return f"127.0.0.1:{free_port()}"


async def read_all(broker: BrokerProcess, topic: str, total: int) -> list[Record]:
    async with Cluster(read_bootstrap(broker.bootstrap)) as cluster:
        positions = dict.fromkeys(await cluster.partitions(topic), 0)
        found: list[Record] = []
        async for records in Consumer(cluster, topic, positions).poll():
            found += records
            if len(found) >= total:
                break
        return found


def test_the_first_lines_of_the_documentation(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def work() -> int:
        async with AsyncProducer(broker.bootstrap, acks="all") as p:
            delivery = p.send(topic, b"value", key=b"key")
            return (await delivery).offset

    assert run(work) == 0


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_what_is_sent_is_read(run: Run, broker: BrokerProcess, topic: str, acks: str, compression: str) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, acks=acks, compression_type=compression) as p:
            headers = [("a", b"1"), ("a", None)]
            deliveries = [p.send(topic, b"%d" % n, partition=0, headers=headers, timestamp=5) for n in range(50)]
            deliveries.append(p.send(topic, None, key=b"", partition=0, timestamp=6))
            places = await asyncio.gather(*deliveries)
        assert {each.confirmed for each in places} == {acks != "0"}
        assert [each.offset for each in places] == (list(range(51)) if acks != "0" else [-1] * 51)
        found = await read_all(broker, topic, 51)
        assert [each.value for each in found] == [b"%d" % n for n in range(50)] + [None]
        assert found[0].headers == headers
        assert (found[0].key, found[0].timestamp, found[50].key, found[50].headers) == (None, 5, b"", [])

    run(work)


def test_messages_of_one_turn_go_together_and_end_each_for_itself(
    run: Run, start_broker: Callable[..., BrokerProcess]
) -> None:
    """Also those that are withdrawn from among them, and those whose batch the broker takes in halves only."""
    broker = start_broker("message.max.bytes=2000")

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, linger_ms=10_000) as p:
            early = [p.send("t", b"early %d" % n, key=b"%d" % n) for n in range(3)]
            await p.flush()
            assert {each.outcome for each in early} == {Outcome.DELIVERED}
            sent = [p.send("t", b"%d" % n, partition=0, timestamp=n, headers=[("n", b"%d" % n)]) for n in range(300)]
            withdrawn = sent.pop(7), sent.pop(100)
            assert [each.cancel() for each in withdrawn] == [True, True]
            waiting = asyncio.gather(*sent)
            await asyncio.sleep(0)
            await p.flush()
            places = await waiting
            assert [each.timestamp for each in places] == [n for n in range(300) if n not in (7, 101)]
            assert {type(each.exception()) for each in withdrawn} == {Cancelled}
            by_offset = {each.offset: each for each in await read_all(broker, "t", 301) if each.headers}
        assert p.metrics().buffer_bytes == 0
        assert (p.metrics().accepted, p.metrics().delivered, p.metrics().failed) == (303, 301, 2)
        for place in places:
            assert by_offset[place.offset].value == b"%d" % place.timestamp
            assert by_offset[place.offset].headers == [("n", b"%d" % place.timestamp)]

    run(work)


def test_channels_as_saramas(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def work() -> None:
        p = AsyncProducer(broker.bootstrap, **{"Producer.Return.Successes": True})
        for number in range(20):
            await p.input.put(Message(topic, b"x", partition=0, metadata=number))
        await p.input.put(Message("no/topic", b"x"))
        await p.close()
        assert [each.message.metadata async for each in p.successes] == list(range(20))
        (error,) = [each async for each in p.errors]
        assert error.message.topic == "no/topic"
        assert error.error.outcome is Outcome.NOT_WRITTEN
        assert p.metrics().buffer_bytes == 0

    run(work)


def test_columns(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, buffer_memory=5_000_000) as p:
            plain = await p.send_many(topic, None, [b"%d" % n for n in range(50_000)])
            keyed = await p.send_many(topic, [b"k%d" % (n % 100) for n in range(1000)], [b"v"] * 1000)
        places = set(zip(plain.partitions, plain.offsets, strict=True))
        assert len(places) == 50_000
        by_place = {(each.partition, each.offset): each for each in await read_all(broker, topic, 51_000)}
        for row in range(0, 50_000, 997):
            assert by_place[plain.partitions[row], plain.offsets[row]].value == b"%d" % row
        for row in range(1000):
            assert by_place[keyed.partitions[row], keyed.offsets[row]].key == b"k%d" % (row % 100)

    run(work)


def test_columns_may_be_larger_than_the_memory(run: Run, broker: BrokerProcess, topic: str) -> None:
    """Memory that was given back just before a row asked for some did not let the event loop run any more."""

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, buffer_memory=4_200_000) as p:
            values = [b"%d" % n + bytes(1000) for n in range(20_000)]
            assert len(set((await p.send_many(topic, None, values, partition=0)).offsets)) == 20_000

    run(work)


def test_columns_keep_their_order_while_they_wait_for_memory(run: Run, broker: BrokerProcess, topic: str) -> None:
    """The rows of a later column took the memory that an earlier one waited for, and were stored before it."""

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, buffer_memory=4_200_000, max_request_size=1_000_000) as p:
            sizes = [400_000, 10] * 8
            columns = [p.send_many(topic, None, [bytes(size)] * 4, partition=0) for size in sizes]
            found = await asyncio.gather(*columns)
        assert [offset for each in found for offset in each.offsets] == list(range(64))

    run(work)


def test_a_row_that_is_too_large_fails_alone(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, max_request_size=1000) as p:
            words = r"1 of 3 rows failed.* row 1 of 2,.* bytes is above max\.request\.size"
            with pytest.raises(RowsFailed, match=words) as caught:
                await p.send_many(topic, None, [b"a", b"b" * 2000, b"c"])
        assert list(caught.value.failures) == [1]

    run(work)


def test_a_column_may_be_an_array(run: Run, broker: BrokerProcess, topic: str) -> None:
    class Arrow:
        def to_pylist(self) -> list[bytes | bytearray | None]:
            return [b"a", None, bytearray(b"c")]

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap) as p:
            assert len((await p.send_many(topic, None, Arrow())).offsets) == 3
            with pytest.raises(TypeError, match="row 0 of values is int"):
                await p.send_many(topic, None, array("b", [1]))
            with pytest.raises(ValueError, match="1 keys for 2 values"):
                await p.send_many(topic, [b""], [b"", b""])

    run(work)


def test_close_and_abort_end_everything_without_a_broker(run: Run, nowhere: str) -> None:
    async def work() -> None:
        for end in ("close", "abort"):
            p = AsyncProducer(nowhere)
            deliveries = [p.send("t", b"x") for _ in range(10)]
            await asyncio.sleep(0)
            await asyncio.gather(*([p.close(0.05), p.close(0.01)] if end == "close" else [p.abort(), p.close()]))
            for each in deliveries:
                assert isinstance(each.exception(), ProducerClosed)
                assert each.outcome is Outcome.NOT_WRITTEN
            with pytest.raises(ProducerClosed):
                p.send("t", b"x")
            await p.close()
            await p.flush()

    run(work)


def test_a_message_expires_without_a_broker(run: Run, nowhere: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with AsyncProducer(nowhere, delivery_timeout_ms=50) as p:
            never_awaited = p.send("t", b"x")
            with pytest.raises(Expired, match="not found within"):
                await p.send("t", b"x")
        assert never_awaited.outcome is Outcome.NOT_WRITTEN

    with caplog.at_level(logging.WARNING):
        run(work)
    assert "a message was not delivered (failed, not written)" in caplog.text


def test_who_stops_waiting_takes_back_what_was_not_sent(run: Run, nowhere: str) -> None:
    async def work() -> None:
        p = AsyncProducer(nowhere)
        alone, shared = p.send("t", b"x"), p.send("t", b"y")
        waits = [asyncio.ensure_future(_get(each)) for each in (alone, shared, shared)]
        await asyncio.sleep(0)
        waits[0].cancel()
        waits[1].cancel()
        await asyncio.gather(waits[0], waits[1], return_exceptions=True)
        assert alone.outcome is Outcome.NOT_WRITTEN
        assert shared.outcome is None, "somebody else still waits for it"
        assert shared.cancel()
        with pytest.raises(Cancelled):
            await waits[2]
        assert not shared.cancel()
        await p.close()

    async def _get(delivery: Awaitable[Any]) -> Any:
        return await delivery

    run(work)


def test_memory_is_waited_for(run: Run, nowhere: str) -> None:
    async def work() -> None:
        p = AsyncProducer(nowhere, buffer_memory=10_000, max_request_size=1000, max_block_ms=50)
        sent = []
        with pytest.raises(BufferFull, match="no memory for"):
            while True:
                sent.append(p.try_send("t", b"x" * 500))
        waiting = p.send("t", b"x" * 500)
        with pytest.raises(BufferFull, match=r"max\.block\.ms"):
            await p.input.put(Message("t", b"x" * 500))
        with pytest.raises(BufferFull, match=r"max\.block\.ms"):
            await waiting
        assert sent[0].cancel()
        await p.input.put(Message("t", b"x" * 500))
        await p.abort()

    run(work)


def test_a_topic_that_rows_waited_for_in_vain_is_asked_for_no_more(run: Run, nowhere: str) -> None:
    async def work() -> None:
        p = AsyncProducer(nowhere, max_block_ms=50)
        dispatcher = p._driver.pipeline.dispatcher
        with pytest.raises(Expired, match="the partitions of topic 't' were not found"):
            await p.send_many("t", None, [b"x"])
        assert not dispatcher.incomplete
        await p.abort()

    run(work)


def test_interceptors_see_each_message_once(run: Run, broker: BrokerProcess, topic: str) -> None:
    seen: list[Any] = []

    class Counts:
        def on_send(self, message: Message) -> Message:
            seen.append(message.value)
            return message._replace(value=message.value + b"!" if message.value else None)

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            seen.append(metadata.offset if metadata else type(error))

    class Breaks:
        def on_send(self, message: Message) -> Message:
            raise RuntimeError("of the caller's")

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            raise RuntimeError("of the caller's")

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, interceptor_classes=[Breaks(), Counts()], max_request_size=200) as p:
            await p.send(topic, b"a", partition=0)
            await p.send(topic, b"b", partition=0)
            with pytest.raises(DeliveryFailed, match=r"above max.request.size=200"):
                p.send(topic, b"c" * 200)
        assert [each.value for each in await read_all(broker, topic, 2)] == [b"a!", b"b!"]

    run(work)
    assert seen == [b"a", 0, b"b", 1, b"c" * 200, DeliveryFailed]


def test_an_interceptor_that_returns_no_message_changes_nothing(run: Run, broker: BrokerProcess, topic: str) -> None:
    class Returns:
        def on_send(self, message: Message) -> Any:
            return 5

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, interceptor_classes=[Returns()]) as p:
            assert (await p.send(topic, b"x", partition=0)).offset == 0

    run(work)


def test_an_interceptor_whose_work_was_cancelled_holds_up_nothing(run: Run, broker: BrokerProcess, topic: str) -> None:
    class Cancelled:
        def on_send(self, message: Message) -> None:
            raise asyncio.CancelledError

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            raise asyncio.CancelledError

    async def work() -> None:
        unhandled: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
        async with AsyncProducer(broker.bootstrap, interceptor_classes=[Cancelled()]) as p:
            sent = [p.send(topic, b"x", partition=each % 2) for each in range(4)]
            assert sorted([(await each).offset for each in sent]) == [0, 0, 1, 1]
        assert unhandled == []

    run(work)


def test_an_interceptor_that_always_sends_again_does_not_keep_the_producer_open(run: Run, nowhere: str) -> None:
    refused: list[Any] = []

    async def work() -> None:
        class SendsAgain:
            def on_acknowledgement(self, metadata: Any, error: Any) -> None:
                try:
                    p.send("t", b"again")
                except DeliveryFailed as failure:
                    refused.append(type(failure))
                    raise

        p = AsyncProducer(nowhere, interceptor_classes=[SendsAgain()])
        sent = [p.send("t", b"x"), p.send("t", b"y")]
        async with asyncio.timeout(60):
            await p.close(0)
        assert [each.outcome for each in sent] == [Outcome.NOT_WRITTEN] * 2
        with pytest.raises(ProducerClosed):
            p.send("t", b"late")

    run(work)
    assert refused == [ProducerClosed] * 3


def test_a_call_from_another_thread_is_refused_and_breaks_nothing(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap) as p:
            await p.send(topic, b"a", partition=0)
            for partition in (0, None):  # two ways of a message
                with pytest.raises(RuntimeError, match="make one in each loop, or use Producer"):
                    await asyncio.to_thread(p.send, topic, b"lost", partition=partition)
            assert (await p.send(topic, b"b", partition=0)).offset == 1
            assert p.metrics().accepted == 2

    run(work)


def test_a_second_event_loop_is_refused(run: Run, nowhere: str) -> None:
    p = AsyncProducer(nowhere)

    async def first() -> None:
        p.send("t", b"x")
        await p.abort()

    async def second() -> None:
        calls: list[Callable[[], Awaitable[Any]]] = [p.flush, p.close, p.abort]
        calls += [lambda: p.input.put(Message("t", b"x")), lambda: p.send_many("t", None, [])]
        for call in calls:
            with pytest.raises(RuntimeError, match="for the event loop of its first call"):
                await call()
        with pytest.raises(RuntimeError, match="for the event loop of its first call"):
            p.send("t", b"x")

    run(first)
    run(second)


def test_what_is_not_bytes_is_refused_with_advice(run: Run, nowhere: str) -> None:
    async def work() -> None:
        async with AsyncProducer(nowhere) as p:
            with pytest.raises(TypeError, match=r"value is str, not bytes; encode it first"):
                p.send("t", "text")  # type: ignore[arg-type]
            with pytest.raises(DeliveryFailed, match="is no topic's name"):
                p.send("", b"x")

    run(work)


def test_a_broker_that_is_restarted_loses_and_doubles_nothing(
    run: Run, start_broker: Callable[..., BrokerProcess]
) -> None:
    broker = start_broker("num.partitions=2")

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, batch_num_messages=5) as p:
            deliveries = [p.send("t", b"%d" % n, partition=0) for n in range(100)]
            await deliveries[10]
            broker.kill()
            deliveries += [p.send("t", b"%d" % n, partition=0) for n in range(100, 200)]
            await asyncio.to_thread(broker.start)
            places = await asyncio.gather(*deliveries)
        assert [each.offset for each in places] == list(range(200))
        assert [each.value for each in await read_all(broker, "t", 200)] == [b"%d" % n for n in range(200)]

    run(work)


def test_the_blocking_producer(run: Run, broker: BrokerProcess, topic: str) -> None:
    with Producer(broker.bootstrap) as p:
        results = [p.send(topic, b"%d" % n, partition=1) for n in range(3000)]
        p.flush()
        assert [each.result().offset for each in results] == list(range(3000))
        assert p.send_many(topic, None, [b"a", b"b"], partition=0).offsets == [0, 1]
        assert p.metrics().delivered == 3002
    p.close()
    with pytest.raises(ProducerClosed):
        p.send(topic, b"x")
    with pytest.raises(ProducerClosed):
        p.flush()


def test_the_blocking_producer_ends_without_a_broker(run: Run, nowhere: str) -> None:
    p = Producer(nowhere)
    result = p.send("t", b"x")
    p.abort()
    with pytest.raises(ProducerClosed):
        result.result()
    p.close()


def test_an_address_may_be_written_as_the_broker_writes_it(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(f"kafka://{broker.bootstrap}, {broker.bootstrap}") as p:
            assert (await p.send(topic, b"x")).offset == 0

    run(work)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_batch_has_no_more_messages_than_it_may(
    run: Run, broker: BrokerProcess, topic: str, keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    take = PartitionProducer.take

    def counted(partition: PartitionProducer, room: float) -> ProducerBatch | None:
        batch = take(partition, room)
        counts.append(batch.count if batch is not None else 0)
        return batch

    monkeypatch.setattr(PartitionProducer, "take", counted)

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, batch_num_messages=3) as p:
            for n in range(20):
                p.send(topic, b"%d" % n, key=b"%d" % n if keyed else None)
            await p.send_many(topic, [b"k"] * 10 if keyed else None, [b"row"] * 10)

    run(work)
    assert sum(counts) == 30
    assert max(counts) == 3
