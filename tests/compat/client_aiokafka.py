"""aiokafka: the asyncio client."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from compat.record import Record

name = "aiokafka"


def produce(
    bootstrap: str, topic: str, records: list[Record], *, acks: str, compression: str, idempotent: bool
) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=acks if acks == "all" else int(acks),
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, r.value, r.key, headers=list(r.headers), partition=0) for r in records]
            await asyncio.gather(*sent)
        finally:
            await producer.stop()

    asyncio.run(run())


def consume(bootstrap: str, topic: str, count: int) -> list[Record]:
    async def run() -> list[Record]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            messages = [await asyncio.wait_for(consumer.getone(), 30) for _ in range(count)]
            return [Record(m.key, m.value, tuple(m.headers)) for m in messages]
        finally:
            await consumer.stop()

    return asyncio.run(run())
