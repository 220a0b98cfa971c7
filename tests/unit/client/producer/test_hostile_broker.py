"""A broker that lies, in every request of the producer: it never hangs it, never makes it lie, and takes no memory."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import DeliveryFailed, Expired, Message, Outcome
from lying_broker import API_VERSIONS, FAST, INIT_PRODUCER_ID, METADATA, PRODUCE, Lie, LyingBroker

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
STAGES = {"metadata": METADATA, "producer id": INIT_PRODUCER_ID, "produce": PRODUCE, "versions": API_VERSIONS}
LIES: dict[str, Lie] = {
    "another correlation id": lambda answer: answer[:4] + b"\x7f\xff\xff\xff" + answer[8:],
    "a negative length": lambda answer: b"\xff\xff\xff\xff" + answer[4:],
    "a huge length": lambda answer: b"\x7f\xff\xff\xff" + answer[4:],
    "a negative count": lambda answer: answer[:8] + b"\xff\xff\xff\xf0" * 20,
    "a huge count": lambda answer: answer[:8] + b"\x7f\xff\xff\xff" * 20,
    "noise": lambda answer: bytes(range(256)),
    "nothing at all": lambda answer: None,
    "half": lambda answer: answer[: len(answer) // 2],
    "twice": lambda answer: answer + answer,
}
PATIENT = {"request_timeout_ms": 60_000, "delivery_timeout_ms": 120_000}  # for whoever is answered


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_ends_in_the_truth(run: Run, stage: str, lie: str) -> None:
    broker = LyingBroker()
    broker.lies[STAGES[stage]] = LIES[lie]

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **FAST) as p:
            try:
                place = await p.send("t", b"x")
            except DeliveryFailed as error:
                assert error.outcome is Outcome.UNKNOWN or not broker.produced
                # What is true twice over is believed: on a busy machine the time may be over behind it.
                assert error.outcome is Outcome.NOT_WRITTEN or stage == "produce" or lie == "twice"
            else:
                assert lie == "twice", "the answer itself was true"
                assert place.offset == 5

    run(work)


@pytest.mark.parametrize(
    "row",
    [{"index": 3}, {"error_code": 12345}, {"error_code": -1}, {"base_offset": -77}, {"error_code": 45}],
    ids=["another partition", "an unknown error", "an unexpected error", "a negative offset", "out of order"],
)
def test_a_row_that_lies(run: Run, row: dict[str, Any]) -> None:
    broker = LyingBroker()
    broker.row = row
    settings = FAST if "index" in row else FAST | PATIENT

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **settings) as p:
            try:
                place = await p.send("t", b"x")
            except DeliveryFailed as error:
                is_certain = row == {"error_code": 45}
                # A request may be on its way when the time is over: the broker has not read it, and nothing is known.
                assert error.outcome is Outcome.UNKNOWN or is_certain or not broker.produced
                assert error.outcome is Outcome.NOT_WRITTEN or not is_certain
            else:
                assert (row, place.offset) == ({"base_offset": -77}, -1)

    run(work)


LAST = (1 << 63) - 1  # offset


@pytest.mark.parametrize("base", [LAST - 4, LAST - 3, LAST, -1, -(1 << 63)])
def test_offsets_that_cannot_be_are_not_told(run: Run, base: int) -> None:
    """Five messages in a batch: the last offset is four above the first."""
    broker = LyingBroker()
    broker.row = {"base_offset": base}
    told = list(range(base, LAST + 1)) if base == LAST - 4 else [-1] * 5

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **PATIENT) as p:
            assert [each.offset for each in await asyncio.gather(*[p.send("t", b"x") for _ in range(5)])] == told
            assert (await p.send_many("t", None, [b"x"] * 5)).offsets == told

    run(work)


@pytest.mark.parametrize(
    "node", [{"port": 70_000}, {"port": -5}, {"host": "a\0b"}, {"host": "é" * 80}], ids=lambda node: repr(node)[:20]
)
def test_an_address_that_cannot_be_breaks_nothing(run: Run, node: dict[str, Any]) -> None:
    """The producer asks the brokers of a Metadata answer in turn when the first one is gone."""
    broker = LyingBroker()
    broker.node = node

    def hang_up_once(answer: bytes) -> bytes:
        broker.lies[METADATA] = hang_up_always
        return answer

    def hang_up_always(answer: bytes) -> bytes:
        return answer[:3]

    broker.lies[METADATA] = hang_up_once

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **FAST | {"delivery_timeout_ms": 240_000}) as p:
            sent = p.send("t", b"x")
            async with asyncio.timeout(120):
                while p._driver._control._turn < 3:  # it went over the address that cannot be, and came back
                    await asyncio.sleep(0.01)
            assert not sent.done()
            broker.lies.clear()
            broker.node = {}
            assert (await sent).offset == 5

    run(work)


REASONS: dict[str, tuple[dict[int, dict[str, Any]], dict[str, Any], str]] = {
    "no producer id": ({INIT_PRODUCER_ID: {"error_code": 15}}, {}, "a broker refused a producer id: .*COORDINATOR_NOT"),
    "no id": ({INIT_PRODUCER_ID: {"producer_id": -1}}, {}, "gave the producer id -1 with epoch 0; neither may be neg"),
    "no epoch": ({INIT_PRODUCER_ID: {"producer_epoch": -1}}, {}, "gave the producer id 7 with epoch -1; neither may"),
    "no broker": ({METADATA: {"brokers": []}}, {}, "no broker is known to lead it"),
    "no topic": (
        {METADATA: {"topics": [{"name": "t", "error_code": 3, "partitions": []}]}},
        {},
        "UNKNOWN_TOPIC_OR_PART",
    ),
    "nobody listens": ({}, {"port": 1}, "cannot connect to 127.0.0.1:1: Connection refused"),
    "too few replicas": ({PRODUCE: {}}, {}, "NOT_ENOUGH_REPLICAS"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_message_that_expires_says_why(run: Run, caplog: pytest.LogCaptureFixture, reason: str) -> None:
    broker = LyingBroker()
    broker.answers, broker.node, sentence = REASONS[reason]
    broker.row = {"error_code": 19, "base_offset": -1} if PRODUCE in broker.answers else {}

    async def work() -> None:
        settings = FAST | {"request_timeout_ms": 60_000, "delivery_timeout_ms": 2000, "max_block_ms": 500}
        async with broker.run() as address, AsyncProducer(address, **settings) as p:
            with pytest.raises(Expired, match=sentence):
                await p.send("t", b"x")
            if reason == "no topic":
                with pytest.raises(Expired, match=sentence):
                    await p.send_many("t", None, [b"x"])

    run(work)
    if reason == "no producer id":
        assert "a broker refused a producer id" in caplog.text


@pytest.mark.parametrize("code", [17, 29], ids=["no topic's name", "no permission"])
def test_a_topic_that_is_refused_fails_a_column_at_once(run: Run, code: int) -> None:
    """A message failed at once; a column waited `max.block.ms`."""
    broker = LyingBroker()
    broker.answers[METADATA] = {"topics": [{"name": "t", "error_code": code, "partitions": []}]}

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, retry_backoff_ms=1, max_block_ms=5000) as p:
            for _ in range(2):
                with pytest.raises(DeliveryFailed, match="topic 't'") as caught:
                    await p.send_many("t", None, [b"x"])
                assert (type(caught.value), caught.value.outcome) == (DeliveryFailed, Outcome.NOT_WRITTEN)
            del broker.answers[METADATA]
            assert (await p.send_many("t", None, [b"x"])).offsets == [5]

    run(work)


@pytest.mark.parametrize("put", [False, True])
def test_a_partition_that_is_not_known_is_asked_for(run: Run, put: bool) -> None:
    """It may have been added. Messages that named it failed until `metadata.max.age.ms` had passed."""
    broker = LyingBroker()

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, retry_backoff_ms=1) as p:
            await p.send("t", b"x")
            (topic,) = broker._honest(METADATA)["topics"]
            (row,) = topic["partitions"]
            broker.answers[METADATA] = {"topics": [topic | {"partitions": [row, row | {"partition_index": 1}]}]}
            broker.row = {"index": 1}
            before = broker.told
            with pytest.raises(DeliveryFailed, match="has no partition 1"):
                await p.input.put(Message("t", b"x", partition=1)) if put else p.send("t", b"x", partition=1)
            async with asyncio.timeout(120):
                while broker.told == before:
                    await asyncio.sleep(0.005)
                while p._driver.pipeline.dispatcher.topics["t"].count < 2:
                    await asyncio.sleep(0.005)
            assert (await p.send("t", b"x", partition=1)).partition == 1

    run(work)


@pytest.mark.parametrize("lie", [{"producer_id": -1}, {"producer_epoch": -1}], ids=repr)
def test_another_broker_is_asked_for_an_id_where_one_lies(run: Run, lie: dict[str, int]) -> None:
    liar, honest = LyingBroker(), LyingBroker()
    liar.answers[INIT_PRODUCER_ID] = lie

    async def work() -> None:
        async with (
            liar.run() as first,
            honest.run() as second,
            AsyncProducer(f"{first},{second}", retry_backoff_ms=1, delivery_timeout_ms=10_000) as p,
        ):
            assert (await p.send("t", b"x")).offset == 5

    run(work)


def test_topics_that_nobody_asked_for_are_not_kept(run: Run) -> None:
    broker = LyingBroker()

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, metadata_max_age_ms=5, retry_backoff_ms=1) as p:
            asked = broker._honest(METADATA)["topics"]
            for turn in range(5):
                strangers = [{**asked[0], "name": f"stranger-{turn}-{each}"} for each in range(50)]
                broker.answers[METADATA] = {"topics": asked + strangers}
                before = broker.told
                while broker.told < before + 2:  # answers with these
                    await asyncio.sleep(0.005)
                    await p.send("t", b"x")
            known = p._driver.pipeline.brokers._metadata
            assert set(known._leaders) == {("t", 0)}
            assert set(known._topics) == {"t"}

    run(work)


def test_a_partition_that_was_stopped_is_resumed(run: Run) -> None:
    broker = LyingBroker()
    broker.row = {"error_code": 87, "base_offset": -1}

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, on_failure="stop") as p:
            with pytest.raises(DeliveryFailed, match="INVALID_RECORD"):
                await p.send("t", b"x", partition=0)
            broker.row = {}
            with pytest.raises(DeliveryFailed, match="takes no messages since one failed"):
                p.send("t", b"x", partition=0)
            p.resume("t", 0)
            assert (await p.send("t", b"x", partition=0)).offset == 5

    run(work)


def test_what_a_broker_says_is_readable_and_short(run: Run) -> None:
    broker = LyingBroker()
    broker.row = {"error_code": 87, "base_offset": -1, "error_message": "bad\n\x1b[2J" + "x" * 30_000}

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address) as p:
            with pytest.raises(DeliveryFailed, match="bad") as caught:
                await p.send("t", b"x")
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 2200

    run(work)


def test_an_endless_answer_takes_no_memory(run: Run) -> None:
    broker = LyingBroker()
    broker.lies[METADATA] = LIES["a huge length"]
    broker.endless = True

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, receive_message_max_bytes=100_000, **FAST) as p:
            tracemalloc.start()
            try:
                with pytest.raises(DeliveryFailed):
                    await p.send("t", b"x")
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            broker.endless = False
        assert peak < 5_000_000

    run(work)


def test_an_answer_that_ends_at_any_byte_is_asked_for_again(run: Run) -> None:
    async def work() -> None:
        broker = LyingBroker()
        async with broker.run() as address:
            at = total = 0
            while not total or at < total:

                def cut(answer: bytes, at: int = at) -> bytes:
                    nonlocal total
                    total = len(answer)
                    del broker.lies[PRODUCE]
                    return answer[:at]

                broker.lies[PRODUCE] = cut
                async with AsyncProducer(address, retry_backoff_ms=1) as p:
                    assert (await p.send("t", b"x")).offset == 5
                    assert p.metrics().retries == 1
                at += 1

    run(work)


def test_a_request_that_ends_at_any_byte_is_sent_again(run: Run) -> None:
    async def work() -> None:
        broker = LyingBroker()
        async with broker.run() as address:
            for at in range(0, 140, 7):
                broker.cut = at
                async with AsyncProducer(address, retry_backoff_ms=1) as p:
                    assert (await p.send("t", b"x")).offset == 5
                    assert p.metrics().retries == 1

    run(work)
