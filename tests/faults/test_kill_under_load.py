"""kill -9 of the broker while four idempotent producers write (reliability F01): nothing lost, doubled or out of order.

Ten kills in the suite; `make kill-loop` sets KORVET_TEST_KILLS=50.
"""

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess
from counts import note_numbers

PRODUCERS = 4
PARTITIONS = 3
KILLS = int(os.environ.get("KORVET_TEST_KILLS", "10"))


class Writer(threading.Thread):
    """An idempotent producer that numbers its records and notes which were acknowledged."""

    def __init__(self, bootstrap: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.sent = 0
        self.acknowledged: set[int] = set()
        self.refused: list[str] = []
        self.enough = threading.Event()
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
            }
        )

    def run(self) -> None:
        while not self.enough.is_set():
            for _ in range(50):
                self.send()
            self.producer.poll(0.01)
            while len(self.producer) > 2_000 and not self.enough.is_set():
                self.producer.poll(0.05)
        self.producer.flush(120)

    def send(self) -> None:
        number = self.sent
        self.sent += 1

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.acknowledged.add(number)
            else:
                self.refused.append(str(error))

        self.producer.produce("kill", b"%d" % number, self.name, number % PARTITIONS, on_delivery=delivered)


def read_all(bootstrap: str) -> dict[tuple[str, int], list[int]]:
    """Every record in the topic: (producer, partition) -> its numbers in log order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = [TopicPartition("kill", p, 0) for p in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(partition, timeout=60)[1] for partition in partitions)
    consumer.assign(partitions)
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    while left:
        messages = consumer.consume(5_000, timeout=120)
        assert messages, f"{left} records below the end of the log did not arrive"
        for message in messages:
            assert message.error() is None, message.error()
            found[message.key().decode(), message.partition()].append(int(message.value()))
        left -= len(messages)
    consumer.close()
    return found


@pytest.mark.timeout(240 + 12 * KILLS)
def test_no_acknowledged_record_is_lost_or_doubled(start_broker: Callable[..., BrokerProcess]) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    broker = start_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("kill", PARTITIONS, 1)])["kill"].result(60)
    writers = [Writer(broker.bootstrap, f"writer-{n}") for n in range(PRODUCERS)]
    for writer in writers:
        writer.start()
    for _ in range(KILLS):
        before = [len(writer.acknowledged) for writer in writers]
        deadline = time.monotonic() + 200
        while any(len(w.acknowledged) < b + 100 for w, b in zip(writers, before, strict=True)):
            assert time.monotonic() < deadline, "the producers make no progress"
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.2))
        broker.kill()
        broker.start()
    for writer in writers:
        writer.enough.set()
    for writer in writers:
        writer.join(150)
        assert not writer.refused, writer.refused[:3]
        assert len(writer.acknowledged) == writer.sent
    found = read_all(broker.bootstrap)
    for writer in writers:
        for partition in range(PARTITIONS):
            acknowledged = {number for number in writer.acknowledged if number % PARTITIONS == partition}
            note_numbers(acknowledged, found[writer.name, partition])
            numbers = found[writer.name, partition]
            assert numbers == list(range(partition, writer.sent, PARTITIONS)), (writer.name, partition)
    print(f"{KILLS} kills, {sum(w.sent for w in writers):,} records, all there, once, in order")
