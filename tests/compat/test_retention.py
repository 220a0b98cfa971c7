"""Topics cut by time and by size, in segments of their own."""

import asyncio

from broker_process import BrokerProcess
from kafka_server import RawClient, make_batch
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import read_log
from topic_life import BASE, find, read_log_from, scene, segments, set_config


async def wait_for_start(client: RawClient, topic: str, offset: int) -> None:
    """Until the log starts there; retention looks by itself, and the test's time limit bounds the waiting."""
    while (found := (await find(client, topic, -2))[0][0]) != offset:
        assert found < offset
        await asyncio.sleep(0.05)


def test_retention_by_size_deletes_whole_segments(tidy_broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic)
        for number in range(20):
            await client.produce(topic, make_batch(b"%02d" % number + bytes(1_500)))  # two to a segment
        assert len(segments(tidy_broker, topic)) == 10
        await set_config(client, topic, "retention.bytes", "7000")
        # Segments go while what is left is at least 7,000 bytes: three of some 3,150 stay.
        await wait_for_start(client, topic, 14)
        assert [value[:2] for value in await read_log_from(client, topic, 14)] == [b"%02d" % n for n in range(14, 20)]
        assert (await client.fetch(topic, 13))["error_code"] == CODES["OFFSET_OUT_OF_RANGE"]

    scene(tidy_broker, work)
    assert [int(path.stem) for path in segments(tidy_broker, topic)] == [14, 16, 18]


def test_a_topic_has_its_own_segment_size(tidy_broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic, segment_bytes="20000")
        for number in range(20):
            await client.produce(topic, make_batch(b"%02d" % number + bytes(1_500)))  # twelve to a segment
        assert [int(path.stem) for path in segments(tidy_broker, topic)] == [0, 12]
        await set_config(client, topic, "segment.bytes", "1024")
        for _ in range(3):  # each larger than that: alone in its segment
            await client.produce(topic, make_batch(bytes(1_500)))
        assert [int(path.stem) for path in segments(tidy_broker, topic)] == [0, 12, 20, 21, 22]
        assert len(await read_log(client, topic)) == 23

    scene(tidy_broker, work)


def test_retention_by_time_looks_at_the_records(tidy_broker: BrokerProcess, topic: str) -> None:
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

    scene(tidy_broker, work)
    assert segments(tidy_broker, topic)[0].stem == f"{6:020}"


def test_retention_may_take_everything_and_offsets_go_on(tidy_broker: BrokerProcess, topic: str) -> None:
    async def work(client: RawClient) -> None:
        await client.create(topic)
        for _ in range(3):
            await client.produce(topic, make_batch(b"old", time_ms=BASE))
        await wait_for_start(client, topic, 3)
        assert (await client.produce(topic, make_batch(b"new")))["base_offset"] == 3
        assert await read_log_from(client, topic, 3) == [b"new"]

    scene(tidy_broker, work)
