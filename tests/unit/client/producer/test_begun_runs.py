"""Messages that name their partition begin a run there in a short way; where it is closed they go the long one."""

import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import DeliveryFailed, Outcome, ProducerBroken, ProducerClosed
from korvet_fast.client.producer.message import COPIES, OVERHEAD, Message
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.message_sender import MessageSender
from producer_messages import SentMessage
from producer_world import ProducerWorld

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


def send(world: ProducerWorld, value: bytes, partition: int) -> SentMessage:
    sent = world.messages.send(Message("t", value, None, (), partition, 5), world.now, wait=False)
    world.sent.append(sent)
    return sent


def open_run(world: ProducerWorld, partition: int) -> MessageRun:
    return world.pipeline.dispatcher.topics["t"].runs[partition]


def warm(messages: int, **settings: Any) -> ProducerWorld:
    """A world in which so many messages were delivered to each of two partitions, in one batch each."""
    world = ProducerWorld(**settings)
    for partition in (0, 1):
        for value in [b"first", b"before"]:
            send(world, value, partition)
            world.run(1)
        for number in range(messages):
            send(world, b"%03d" % number, partition)
        world.run(1)
    assert world.pipeline.ledger.memory.empty
    return world


def test_a_run_begins_with_memory_for_as_many_as_the_last_one_had() -> None:
    world = warm(20)
    memory = world.pipeline.ledger.memory
    sent = [send(world, b"001", 0)]
    run = open_run(world, 0)
    assert memory.used == run.charge == COPIES * 20 * (36 + 3) + OVERHEAD * 20
    sent += [send(world, b"%03d" % number, 0) for number in range(2, 21)]
    assert (memory.used, open_run(world, 0)) == (run.charge, run), "all of them joined"
    sent.append(send(world, b"long" * 9, 0))
    assert open_run(world, 0) is run, "it asked for more"
    world.run(1)
    assert [each.outcome for each in sent] == [Outcome.DELIVERED] * 21
    assert [each.delivery.result().offset for each in sent] == list(range(22, 43))
    assert memory.empty
    assert world.pipeline.ledger.counts.accepted == world.pipeline.ledger.counts.delivered == len(world.sent)
    world.messages.check(None)


def test_without_memory_for_so_many_a_message_is_charged_for_itself() -> None:
    world = warm(20, buffer_memory=16_000, max_request_size=4000, batch_size=4000)
    sent = [send(world, b"001", 0), send(world, b"002", 1)]
    assert open_run(world, 0).charge == COPIES * 20 * (36 + 3) + OVERHEAD * 20
    assert open_run(world, 1).charge == COPIES * (36 + 3) + OVERHEAD
    world.run(1)
    assert [each.outcome for each in sent] == [Outcome.DELIVERED] * 2
    assert world.pipeline.ledger.memory.empty
    world.messages.check(None)


def test_none_overtakes_a_message_that_waits_for_memory() -> None:
    world = warm(2, buffer_memory=16_000, max_request_size=4000, batch_size=4000)
    world.down.update({0, 1, 2})
    for node in range(3):
        world.cut(node)
    sizes = (3600, 1800, 300)
    sent = [world.messages.send(Message("t", b"1" * size, None, (), 0, 5), world.now, wait=True) for size in sizes]
    ledger = world.pipeline.ledger
    assert len(ledger.waiting) == 1
    assert sent[1].delivery.cancel()
    assert ledger.memory.total - ledger.memory.used > 5000, "there is memory, which the one that waits gets first"
    with pytest.raises(DeliveryFailed, match="no memory"):
        send(world, b"overtakes", 0)
    assert len(ledger.waiting) == 1


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "stopped"])
def test_what_takes_no_messages_takes_none_in_the_short_way(closed: bool) -> None:
    world = warm(2, on_failure="stop")
    if closed:
        world.pipeline.close()
    else:
        world.pipeline.dispatcher.topics["t"].stopped[0] = DeliveryFailed("it failed")
    with pytest.raises(DeliveryFailed, match=r"takes no more messages|since one failed: it failed") as raised:
        send(world, b"late", 0)
    assert isinstance(raised.value, ProducerClosed) == closed
    assert world.pipeline.ledger.memory.empty


def test_what_is_no_message_is_refused_as_ever(run: Run, broker: BrokerProcess) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, max_request_size=1000) as p:
            await p.send("refused", b"first", partition=0)
            wrong: list[tuple[Any, Any, Any]] = [
                ("text", None, 0),
                (b"", "key", 0),
                (b"", None, True),
                (b"", None, 0.0),
            ]
            for value, key, partition in wrong:
                with pytest.raises(TypeError, match=r"not bytes; encode it first|partition is (bool|float), not int"):
                    p.send("refused", value, key=key, partition=partition)
            with pytest.raises(ValueError, match="partition -1 is not from 0"):
                p.send("refused", b"", partition=-1)
            with pytest.raises(DeliveryFailed, match="has no partition 99"):
                p.send("refused", b"", partition=99)
            with pytest.raises(DeliveryFailed, match=r"above max\.request\.size=1,000"):
                p.send("refused", b"x" * 1000, partition=0)
            sent = [
                p.send("refused", value, key=key, partition=0)
                for value, key in ((b"x", b"k"), (None, b"k"), (b"", None))
            ]
            assert [(await each).offset for each in sent] == [1, 2, 3]
        assert p.metrics().buffer_bytes == 0

    run(work)


def test_the_garbage_collector_looks_at_no_message(run: Run, broker: BrokerProcess) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap) as p:
            await p.send("collected", b"first", partition=0)
            for _ in range(2):  # the second run begins with room for others
                sent = [p.send("collected", b"%d" % number, partition=0) for number in range(5)]
                assert not any(map(gc.is_tracked, sent))
                await p.flush()
            assert [each.result().offset for each in sent] == [6, 7, 8, 9, 10]

    run(work)


def test_a_defect_in_the_short_way_ends_the_message_too(
    run: Run, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("a defect")

    async def work() -> None:
        p = AsyncProducer(broker.bootstrap)
        await p.send("broken-run", b"first", partition=0)
        with monkeypatch.context() as patch:
            patch.setattr(MessageSender, "begin", fail)
            with pytest.raises(KeyError, match="a defect"):
                p.send("broken-run", b"second", partition=0)
        with pytest.raises(ProducerBroken, match="KeyError: 'a defect'"):
            p.send("broken-run", b"third", partition=0)
        await p.close()

    run(work)
