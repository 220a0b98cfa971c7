"""The records of a topic, read by a client that shares no code with ours."""

from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, TopicPartition

Record = tuple[bytes | None, bytes | None, Any]
PATIENCE = 120.0  # seconds for anything at all


def read(bootstrap: str, topic: str) -> dict[int, list[Record]]:
    """Key, value and headers of each partition's records, in order, by librdkafka."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "auto.offset.reset": "error"})
    try:
        places = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
        bounds = {number: consumer.get_watermark_offsets(TopicPartition(topic, number), PATIENCE) for number in places}
        left = {number: end for number, (start, end) in bounds.items() if end > start}
        consumer.assign([TopicPartition(topic, number, bounds[number][0]) for number in left])
        found: dict[int, list[Record]] = defaultdict(list)
        while left:
            message = consumer.poll(PATIENCE)
            assert message is not None, "nothing comes"
            assert message.error() is None, message.error()
            number = message.partition()
            found[number].append((message.key(), message.value(), message.headers()))
            if message.offset() + 1 >= left[number]:
                del left[number]
        return dict(found)
    finally:
        consumer.close()
