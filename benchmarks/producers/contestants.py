"""How each producer sends a window of messages, and waits until the broker has stored all of them.

All of them have the same settings, each in its own words: acks=all, idempotence, no compression, batches of `BATCH`
bytes, a linger of `LINGER` ms, `IN_FLIGHT` requests without an answer, `MEMORY` bytes of messages. aiokafka has no
setting for the last two: one batch of a partition is on its way at a time, and its memory has no limit.

Window and linger are the same for one partition and for 1,000. So with 100 bytes a window is 7 batches of some 7,000
messages at one partition, and 1,000 batches of 50 messages at 1,000 partitions.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from korvet_fast.client import AsyncProducer

WINDOW: Final = 50_000  # messages
KEYS: Final = 10_000
BATCH: Final = 1_000_000  # bytes, which is librdkafka's default
LINGER: Final = 5  # ms, the default of Kafka 4 and of librdkafka
IN_FLIGHT: Final = 5
MEMORY: Final = 1 << 28


class Load:
    """A window of messages, made before anything counts."""

    def __init__(self, address: str, topic: str, partitions: int, size: int) -> None:
        self.address = address
        self.topic = topic
        self.values = [(b"%08d" % number).ljust(size, b".") for number in range(WINDOW)]
        self.keys = [b"key-%d" % (number % KEYS) for number in range(WINDOW)]
        self.partitions = [number % partitions for number in range(WINDOW)]


# Sends one window; returns when all of it is stored, and raises if anything is not.
SendWindow = Callable[[], Any]
Contestant = Callable[[Load], AbstractAsyncContextManager[SendWindow]]


def _korvet(load: Load) -> AsyncProducer:
    return AsyncProducer(
        load.address,
        acks="all",
        enable_idempotence=True,
        compression_type="none",
        batch_size=BATCH,
        linger_ms=LINGER,
        max_in_flight_requests_per_connection=IN_FLIGHT,
        buffer_memory=MEMORY,
    )


async def _settle(producer: Any, sent: list[Any]) -> None:
    """Wait until all messages have ended. Raises what one of them failed with."""
    await producer.flush()
    for each in sent:
        each.result()


@asynccontextmanager
async def korvet_send(load: Load) -> AsyncIterator[SendWindow]:
    async with _korvet(load) as p:
        send, topic, values = p.send, load.topic, load.values

        async def send_window() -> None:
            sent = [send(topic, value) for value in values]
            await _settle(p, sent)

        yield send_window


@asynccontextmanager
async def korvet_keys(load: Load) -> AsyncIterator[SendWindow]:
    async with _korvet(load) as p:
        send, topic, values, keys = p.send, load.topic, load.values, load.keys

        async def send_window() -> None:
            sent = [send(topic, value, key=key) for key, value in zip(keys, values, strict=True)]
            await _settle(p, sent)

        yield send_window


@asynccontextmanager
async def korvet_partitions(load: Load) -> AsyncIterator[SendWindow]:
    async with _korvet(load) as p:
        send, topic, values, partitions = p.send, load.topic, load.values, load.partitions

        async def send_window() -> None:
            sent = [send(topic, value, partition=each) for each, value in zip(partitions, values, strict=True)]
            await _settle(p, sent)

        yield send_window


@asynccontextmanager
async def korvet_columns(load: Load) -> AsyncIterator[SendWindow]:
    async with _korvet(load) as p:

        async def send_window() -> None:
            found = await p.send_many(load.topic, None, load.values)
            assert len(found.offsets) == WINDOW

        yield send_window


@asynccontextmanager
async def korvet_keyed_columns(load: Load) -> AsyncIterator[SendWindow]:
    async with _korvet(load) as p:

        async def send_window() -> None:
            found = await p.send_many(load.topic, load.keys, load.values)
            assert len(found.offsets) == WINDOW

        yield send_window


def _aiokafka(load: Load) -> Any:
    from aiokafka import AIOKafkaProducer

    return AIOKafkaProducer(
        bootstrap_servers=load.address,
        acks="all",
        enable_idempotence=True,
        compression_type=None,
        max_batch_size=BATCH,
        linger_ms=LINGER,
    )


@asynccontextmanager
async def aiokafka_send(load: Load) -> AsyncIterator[SendWindow]:
    async with _aiokafka(load) as p:
        send, topic, values = p.send, load.topic, load.values

        async def send_window() -> None:
            sent = [await send(topic, value) for value in values]
            await _settle(p, sent)

        yield send_window


@asynccontextmanager
async def aiokafka_keys(load: Load) -> AsyncIterator[SendWindow]:
    async with _aiokafka(load) as p:
        send, topic, values, keys = p.send, load.topic, load.values, load.keys

        async def send_window() -> None:
            sent = [await send(topic, value, key=key) for key, value in zip(keys, values, strict=True)]
            await _settle(p, sent)

        yield send_window


def _confluent(load: Load) -> Any:
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": load.address,
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": "none",
            "batch.size": BATCH,
            "batch.num.messages": 1_000_000,  # so that the bytes decide, as with the others
            "linger.ms": LINGER,
            "max.in.flight.requests.per.connection": IN_FLIGHT,
            "queue.buffering.max.kbytes": MEMORY >> 10,
            "queue.buffering.max.messages": 10 * WINDOW,
        }
    )


@asynccontextmanager
async def confluent_produce(load: Load) -> AsyncIterator[SendWindow]:
    p = _confluent(load)
    produce, topic, values = p.produce, load.topic, load.values

    async def send_window() -> None:
        for value in values:
            produce(topic, value)
        assert p.flush() == 0

    yield send_window


@asynccontextmanager
async def confluent_keys(load: Load) -> AsyncIterator[SendWindow]:
    p = _confluent(load)
    produce, topic, values, keys = p.produce, load.topic, load.values, load.keys

    async def send_window() -> None:
        for key, value in zip(keys, values, strict=True):
            produce(topic, value, key)
        assert p.flush() == 0

    yield send_window


CONTESTANTS: Final[dict[str, Contestant]] = {
    "korvet send": korvet_send,
    "korvet send, keys": korvet_keys,
    "korvet send, partition named": korvet_partitions,
    "korvet send_many": korvet_columns,
    "korvet send_many, keys": korvet_keyed_columns,
    "aiokafka send": aiokafka_send,
    "aiokafka send, keys": aiokafka_keys,
    "confluent produce": confluent_produce,
    "confluent produce, keys": confluent_keys,
}
