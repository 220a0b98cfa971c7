"""Clients of Kafka 0.7 go on writing while readers are already today's: both see one topic, at the same offsets.

usage: migrate.py LEGACY_ADDRESS KAFKA_ADDRESS, such as legacy://127.0.0.1:6667 127.0.0.1:9092
"""

import asyncio
import sys

from confluent_kafka import Consumer

from korvet_fast.client import AsyncProducer

CLICKS = [f"click {number}".encode() for number in range(5)]


async def write(address: str) -> None:
    """As a producer of 0.7 does: nothing is answered, so nothing is confirmed."""
    async with AsyncProducer(address, acks=0) as producer:
        for click in CLICKS:
            await producer.send("clicks", click)


def read(address: str) -> list[tuple[int, bytes]]:
    """(offset, value) of each: an offset of 0.7 is a place in the log, in bytes."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "today", "auto.offset.reset": "earliest"})
    consumer.subscribe(["clicks"])
    found = []
    while len(found) < len(CLICKS):
        message = consumer.poll(60)
        if message is None or message.error():
            raise SystemExit(f"no click came: {message and message.error()}")
        found.append((message.offset(), message.value()))
    consumer.close()
    return found


def main() -> None:
    legacy, kafka = sys.argv[1:3]
    asyncio.run(write(legacy))
    for offset, value in read(kafka):
        print(offset, value.decode())


if __name__ == "__main__":
    main()
