"""Topics over time: found by timestamp, cut by retention and by hand, deleted and made anew, and over restarts."""

import asyncio
import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

import batches
from batches import read_values
from broker_process import BrokerProcess
from kafka_server import LIST_OFFSETS, METADATA, RawClient, make_batch, run
from korvet_fast._native import headers
from korvet_fast.wire.kafka.faults import CODES
from raw_connection import connect, read_log, start_producer

BASE = 1_600_000_000_000  # ms; long before retention.ms would keep it, so retention is off where it is used


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Small segments, and retention looks five times a second."""
    settings = ("log.segment.bytes=4096", "log.retention.check.interval.ms=200", "auto.create.topics.enable=false")
    with BrokerProcess(tmp_path_factory.mktemp("life") / "data", *settings) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex[:12]}"


def scene(broker: BrokerProcess, work: Callable[[RawClient], Any]) -> None:
    """Run `work` with a raw client of the broker."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await work(client)

    run(scenario)


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted((Path(broker.store.removeprefix("file:")) / f"{topic}-0").glob("*.log"))


async def find(client: RawClient, topic: str, *times: int) -> list[tuple[int, int]]:
    """(offset, timestamp) by ListOffsets for each time or special number; several requests are under way at once."""
    for ms in times:
        partition = {"partition_index": 0, "timestamp": ms}
        client.send(LIST_OFFSETS, 7, {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}]})
    found = []
    for _ in times:
        row = (await client.reply())["topics"][0]["partitions"][0]
        assert row["error_code"] == 0
        found.append((row["offset"], row["timestamp"]))
    return found


@pytest.mark.parametrize("compression", [0, 4])
@pytest.mark.parametrize("order", ["rising", "shuffled"])
def test_every_timestamp_is_found_exactly(broker: BrokerProcess, topic: str, compression: int, order: str) -> None:
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

    scene(broker, work)
    assert len(segments(broker, topic)) > 3


def batch_of(times: list[int], compression: int, noise: bytes) -> bytearray:
    return batches.make_batch([noise + b"%d" % time for time in times], times=times, compression=compression)


def test_time_lookups_by_a_real_client(broker: BrokerProcess, admin: AdminClient, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic, retention_ms="-1")
        for ms in (100, 300, 200):
            await client.produce(topic, make_batch(b"x", b"y", time_ms=BASE + ms))

    scene(broker, work)
    partition = TopicPartition(topic, 0)

    def ask(spec: Any) -> tuple[int, int]:
        found = admin.list_offsets({partition: spec})[partition].result(10)
        return found.offset, found.timestamp

    assert ask(OffsetSpec.for_timestamp(BASE + 150)) == (2, BASE + 300)
    assert ask(OffsetSpec.for_timestamp(BASE + 301)) == (-1, -1)
    assert ask(OffsetSpec.max_timestamp()) == (2, BASE + 300)
    assert ask(OffsetSpec.earliest())[0] == 0
    assert ask(OffsetSpec.latest())[0] == 6


async def wait_for_start(client: RawClient, topic: str, offset: int) -> None:
    """Until the log starts there; retention looks by itself, and the test's time limit bounds the waiting."""
    while (found := (await find(client, topic, -2))[0][0]) != offset:
        assert found < offset
        await asyncio.sleep(0.05)


def test_retention_by_size_deletes_whole_segments(broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic)
        for number in range(20):
            await client.produce(topic, make_batch(b"%02d" % number + bytes(1_500)))  # two to a segment
        assert len(segments(broker, topic)) == 10
        await set_config(client, topic, "retention.bytes", "7000")
        # Segments go while what is left is at least 7,000 bytes: three of some 3,150 stay.
        await wait_for_start(client, topic, 14)
        assert [value[:2] for value in await read_log_from(client, topic, 14)] == [b"%02d" % n for n in range(14, 20)]
        assert (await client.fetch(topic, 13))["error_code"] == CODES["OFFSET_OUT_OF_RANGE"]

    scene(broker, work)
    assert [int(path.stem) for path in segments(broker, topic)] == [14, 16, 18]


def test_a_topic_has_its_own_segment_size(broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic, segment_bytes="20000")
        for number in range(20):
            await client.produce(topic, make_batch(b"%02d" % number + bytes(1_500)))  # twelve to a segment
        assert [int(path.stem) for path in segments(broker, topic)] == [0, 12]
        await set_config(client, topic, "segment.bytes", "1024")
        for _ in range(3):  # each larger than that: alone in its segment
            await client.produce(topic, make_batch(bytes(1_500)))
        assert [int(path.stem) for path in segments(broker, topic)] == [0, 12, 20, 21, 22]
        assert len(await read_log(client, topic)) == 23

    scene(broker, work)


def test_retention_by_time_looks_at_the_records(broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic, retention_ms="-1")
        for number in range(6):
            await client.produce(topic, make_batch(bytes(1_500), time_ms=BASE + number))
        for _ in range(3):
            await client.produce(topic, make_batch(bytes(1_500)))
        await set_config(client, topic, "retention.ms", "3600000")
        await wait_for_start(client, topic, 6)
        assert len(await read_log_from(client, topic, 6)) == 3
        assert (await find(client, topic, BASE))[0][0] == 6

    scene(broker, work)
    assert segments(broker, topic)[0].stem == f"{6:020}"


def test_retention_may_take_everything_and_offsets_go_on(broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic)
        for _ in range(3):
            await client.produce(topic, make_batch(b"old", time_ms=BASE))
        await wait_for_start(client, topic, 3)
        assert (await client.produce(topic, make_batch(b"new")))["base_offset"] == 3
        assert await read_log_from(client, topic, 3) == [b"new"]

    scene(broker, work)


async def set_config(client: RawClient, topic: str, name: str, value: str) -> None:
    change = {"name": name, "value": value, "config_operation": 0}
    resource = {"resource_type": 2, "resource_name": topic, "configs": [change]}
    answer = await client.ask(44, 1, resources=[resource])
    assert answer["responses"][0]["error_code"] == 0


async def read_log_from(client: RawClient, topic: str, start: int) -> list[bytes]:
    """As a client reads: a batch comes whole, and what lies below the offset asked for is skipped."""
    values: list[bytes] = []
    while page := (await client.fetch(topic, start + len(values)))["records"]:
        values += read_values(page)[start + len(values) - headers(page, False)[0].base_offset :]
    return values


def test_records_are_deleted_by_hand(broker: BrokerProcess, topic: str) -> None:
    async def fill(client: RawClient) -> None:
        await client.create(topic)
        for number in range(4):
            await client.produce(topic, make_batch(*(b"%d" % (5 * number + row) for row in range(5))))

    async def look(client: RawClient) -> None:
        assert await read_log_from(client, topic, 7) == [b"%d" % number for number in range(7, 20)]
        assert (await client.fetch(topic, 6))["error_code"] == CODES["OFFSET_OUT_OF_RANGE"]
        row = await client.fetch(topic, 7)
        assert (row["error_code"], row["log_start_offset"]) == (0, 7)
        assert (await find(client, topic, -2))[0][0] == 7

    async def look_at_nothing(client: RawClient) -> None:
        assert await find(client, topic, -2, -1) == [(20, -1), (20, -1)]
        assert (await client.produce(topic, make_batch(b"new")))["base_offset"] == 20

    def delete(offset: int) -> int:
        # A new client each time: one that has just lost its broker says "no leaders found" without asking anybody.
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        partition = TopicPartition(topic, 0, offset)
        return int(admin.delete_records([partition])[partition].result(10).low_watermark)

    scene(broker, fill)
    assert delete(7) == 7
    assert delete(3) == 7
    with pytest.raises(KafkaException) as refused:
        delete(21)
    assert refused.value.args[0].name() == "OFFSET_OUT_OF_RANGE"
    broker.kill()
    broker.start()
    scene(broker, look)
    assert delete(-1) == 20
    scene(broker, look_at_nothing)


def test_a_topic_made_anew_begins_anew(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    ids = []
    producers: list[tuple[int, int]] = []

    async def write(client: RawClient) -> None:
        answer = await client.ask(METADATA, 12, topics=[{"name": topic, "topic_id": bytes(16)}])
        ids.append(answer["topics"][0]["topic_id"])
        if not producers:
            producers.append(await start_producer(client))
        # The same producer, from sequence 0 again: the new topic knows nothing of it.
        row = await client.produce(topic, make_batch(b"%d" % len(ids), producer=(*producers[0], 0)))
        assert (row["error_code"], row["base_offset"]) == (0, 0)
        assert await read_log(client, topic) == [b"%d" % len(ids)]

    async def gone(client: RawClient) -> None:
        assert (await client.produce(topic, make_batch(b"x")))["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        answer = await client.ask(METADATA, 12, topics=[{"name": None, "topic_id": ids[-1]}])
        assert answer["topics"][0]["error_code"] == CODES["UNKNOWN_TOPIC_ID"]

    for number in range(3):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
        scene(broker, write)
        if number == 1:
            broker.kill()
            broker.start()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics([topic])[topic].result(10)
        scene(broker, gone)
        assert segments(broker, topic) == []
    assert len(set(ids)) == 3


def test_without_auto_creation_unknown_topics_stay_unknown(broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        answer = await client.ask(METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=True)
        assert answer["topics"][0]["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        assert (await client.produce(topic, make_batch(b"x")))["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        answer = await client.ask(METADATA, 9, topics=None)
        assert topic not in [row["name"] for row in answer["topics"]]

    scene(broker, work)


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_producers_are_known_after_a_restart(broker: BrokerProcess, topic: str, clean: bool) -> None:
    async def write(client: RawClient) -> None:
        await client.create(topic)
        producer.extend(await start_producer(client))
        await client.produce(topic, make_batch(b"of nobody"))
        for number in range(7):
            await client.produce(topic, bytearray(batch(number)))

    async def look(client: RawClient) -> None:
        for number in range(2, 7):  # the last five, in any order
            row = await client.produce(topic, bytearray(batch(8 - number)))
            assert (row["error_code"], row["base_offset"]) == (0, 1 + 2 * (8 - number))
        for wrong in (make_batch(b"gap", producer=(*producer, 15)), make_batch(b"other", producer=(*producer, 12))):
            assert (await client.produce(topic, wrong))["error_code"] == CODES["OUT_OF_ORDER_SEQUENCE_NUMBER"]
        row = await client.produce(topic, bytearray(batch(0)))
        assert row["error_code"] == CODES["DUPLICATE_SEQUENCE_NUMBER"]  # too long ago to say where it is
        row = await client.produce(topic, make_batch(b"late", producer=(*producer, 14)))
        assert (row["error_code"], row["base_offset"]) == (0, 15)
        new = await start_producer(client)
        assert new[0] not in (producer[0], -1)
        assert len(await read_log(client, topic)) == 16

    def batch(number: int) -> bytes:
        return bytes(make_batch(b"%d" % number, b"second", time_ms=now, producer=(*producer, 2 * number)))

    now = int(time.time() * 1000)
    producer: list[int] = []
    scene(broker, write)
    if clean:
        assert broker.stop() == 0
    else:
        broker.kill()
    broker.start()
    scene(broker, look)
