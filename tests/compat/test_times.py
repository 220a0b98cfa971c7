"""Records found by their time, exactly."""

import random
from bisect import bisect_left
from itertools import accumulate
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

import batches
from broker_process import BrokerProcess
from kafka_server import RawClient, make_batch
from topic_life import BASE, find, scene, segments


@pytest.mark.parametrize("compression", [0, 4])
@pytest.mark.parametrize("order", ["rising", "shuffled"])
def test_every_timestamp_is_found_exactly(tidy_broker: BrokerProcess, topic: str, compression: int, order: str) -> None:
    """Ties, gaps, times out of order, many segments; before, at, between and after every record's time."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    times = [BASE + at for at in accumulate(chance.choice((0, 0, 1, 2, 50, 10_000)) for _ in range(400))]
    if order == "shuffled":
        chance.shuffle(times)

    async def work(client: RawClient) -> None:
        await client.create(topic, retention_ms="-1")
        done = 0
        while done < len(times):
            size = chance.randrange(1, 20)
            part = times[done : done + size]
            batch = batch_of(part, compression, chance.randbytes(300))
            assert (await client.produce(topic, batch))["base_offset"] == done
            done += len(part)
        asked = sorted({time + near for time in times for near in (-1, 0, 1)})
        highest = list(accumulate(times, max))  # the first record at or after a time is where this reaches it
        expected = [(at, times[at]) if (at := bisect_left(highest, time)) < len(times) else (-1, -1) for time in asked]
        for first in range(0, len(asked), 50):
            assert await find(client, topic, *asked[first : first + 50]) == expected[first : first + 50]
        assert await find(client, topic, -3) == [(times.index(max(times)), max(times))]
        assert await find(client, topic, -2, -1) == [(0, -1), (400, -1)]

    scene(tidy_broker, work)
    assert len(segments(tidy_broker, topic)) > 3


def batch_of(times: list[int], compression: int, noise: bytes) -> bytearray:
    return batches.make_batch([noise + b"%d" % time for time in times], times=times, compression=compression)


def test_time_lookups_by_a_real_client(tidy_broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": tidy_broker.bootstrap})

    async def work(client: RawClient) -> None:
        await client.create(topic, retention_ms="-1")
        for ms in (100, 300, 200):
            await client.produce(topic, make_batch(b"x", b"y", time_ms=BASE + ms))

    scene(tidy_broker, work)
    partition = TopicPartition(topic, 0)

    def ask(spec: Any) -> tuple[int, int]:
        found = admin.list_offsets({partition: spec})[partition].result(60)
        return found.offset, found.timestamp

    assert ask(OffsetSpec.for_timestamp(BASE + 150)) == (2, BASE + 300)
    assert ask(OffsetSpec.for_timestamp(BASE + 301)) == (-1, -1)
    assert ask(OffsetSpec.max_timestamp()) == (2, BASE + 300)
    assert ask(OffsetSpec.earliest())[0] == 0
    assert ask(OffsetSpec.latest())[0] == 6
