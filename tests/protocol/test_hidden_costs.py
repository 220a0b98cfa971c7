"""A small request that costs much work never stops another client: compressed batches, searches, patterns."""

import random
import struct
import time
from collections.abc import Callable

import zstandard

import batches
from broker_process import BrokerProcess
from kafka_server import CONSUMER_GROUP_HEARTBEAT, CREATE_TOPICS, LIST_OFFSETS, PRODUCE, RawClient
from korvet_fast.wire.kafka.errors import CODES
from korvet_reference.checksum import crc32c
from second_client import BOUND, attack, set_up


def _write_varint(number: int) -> bytes:
    """Zigzag, seven bits at a time, as records have it."""
    number <<= 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _unpack_to_much() -> bytes:
    """Some 100 bytes, compressed, that unpack to one record of 1 MiB: 524,000 headers without name and value."""
    headers = 524_000
    record = b"\0\0\0\1\1" + _write_varint(headers) + b"\0\1" * headers
    now = int(time.time() * 1000)
    packed = zstandard.compress(_write_varint(len(record)) + record)
    behind = struct.pack(">hiqqqhii", 4, 0, now, now, -1, -1, -1, 1) + packed
    ahead = struct.pack(">ibI", -1, 2, crc32c(behind))
    return bytes(8) + struct.pack(">i", len(ahead) + len(behind)) + ahead + behind


def test_finding_2_4_small_batches_that_unpack_to_much_stop_nobody(wide: BrokerProcess) -> None:
    rows = [{"index": index, "records": _unpack_to_much()} for index in range(15_000, 17_000)]
    topics = [{"name": "wide", "partition_data": rows}]
    answer, wait = attack(wide, PRODUCE, 9, acks=1, timeout_ms=30_000, topic_data=topics)
    codes = {row["error_code"] for row in answer["responses"][0]["partition_responses"]}
    assert codes <= {0, CODES["INVALID_RECORD"]}
    assert wait < BOUND


def test_finding_2_4_what_comes_after_them_keeps_its_turn(broker: BrokerProcess) -> None:
    async def work(client: RawClient) -> None:
        await client.create("turns", 3)
        heavy = batches.make_batch([b"z" * (1 << 20)], compression=4)
        for _ in range(5):
            client.send_produce("turns", heavy)
            client.send_produce("turns", batches.make_batch([b"light"]))
        offsets = []
        for _ in range(10):
            row = (await client.reply())["responses"][0]["partition_responses"][0]
            assert row["error_code"] == 0
            offsets.append(row["base_offset"])
        assert offsets == list(range(10))

    set_up(broker.port, work)


def _gzip_of_many() -> bytes:
    """A batch of some 600 KB that holds 20,000 records of 1,000 bytes, the latest of them last."""
    chance = random.Random(5)
    values = [chance.randbytes(20).hex().encode() * 25 for _ in range(20_000)]
    now = int(time.time() * 1000)
    return bytes(batches.make_batch(values, times=[now + number for number in range(len(values))], compression=1))


def test_finding_2_5_searching_for_a_time_stops_nobody(wide: BrokerProcess) -> None:
    batch = _gzip_of_many()
    late = int(time.time() * 1000) + 15_000

    async def work(client: RawClient) -> None:
        for index in range(100, 200):
            row = await client.produce("wide", batch, index=index, acks=1)
            assert row["error_code"] == 0, row

    set_up(wide.port, work)
    rows = [{"partition_index": index, "current_leader_epoch": -1, "timestamp": late} for index in range(100, 200)]
    answer, wait = attack(wide, LIST_OFFSETS, 7, topics=[{"name": "wide", "partitions": rows}])
    found = answer["topics"][0]["partitions"]
    assert [row["error_code"] for row in found] == [0] * 100
    assert all(row["timestamp"] >= late for row in found)
    assert wait < BOUND


def test_finding_2_7_a_slow_pattern_stops_nobody(start_broker: Callable[..., BrokerProcess]) -> None:
    started = start_broker()

    async def work(client: RawClient) -> None:
        rows = [
            {"name": f"{number:03}".rjust(249, "n"), "num_partitions": 1, "replication_factor": 1}
            for number in range(500)
        ]
        answer = await client.ask(CREATE_TOPICS, 7, topics=rows, timeout_ms=1000)
        assert {row["error_code"] for row in answer["topics"]} == {0}

    set_up(started.port, work)
    heartbeat = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "topic_partitions": [],
    }
    answer, wait = attack(started, CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat, subscribed_topic_regex="(?:.?){3000}z")
    assert answer["error_code"] in (0, CODES["INVALID_REGULAR_EXPRESSION"])
    assert wait < BOUND
    answer, wait = attack(started, CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat, subscribed_topic_regex="n+00[0-4]")
    assert (answer["error_code"], len(answer["assignment"]["topic_partitions"])) == (0, 5)
