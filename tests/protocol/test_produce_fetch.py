"""Produce and Fetch over a socket: what is sent comes back, and every refusal has its code."""

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from batches import read_values
from kafka_server import FETCH, INIT_PRODUCER_ID, PRODUCE, RawClient, kafka_server, make_batch, run
from korvet_fast._native import check
from korvet_fast.wire.kafka.faults import CODES
from korvet_fast.wire.kafka.routes import ROUTES

FAR = 1 << 30


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", range(3, 12))
def test_produced_records_come_back(tmp_path: Path, version: int, acks: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            row = await client.produce("t", make_batch(b"one", b"two"), version=version, acks=acks)
            assert (row["error_code"], row["base_offset"], row["error_message"]) == (0, 0, None)
            assert row["log_start_offset"] == (0 if version >= 5 else -1)
            assert (await client.produce("t", make_batch(b"three"), version=version))["base_offset"] == 2
            row = await client.fetch("t", 0)
            assert read_values(row["records"]) == [b"one", b"two", b"three"]
            assert (row["high_watermark"], row["last_stable_offset"], row["log_start_offset"]) == (3, 3, 0)

    run(scenario)


@pytest.mark.parametrize("version", range(4, 13))
def test_every_fetch_version_reads(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"one", b"two"))
            for isolation, aborted in ((0, None), (1, [])):
                row = await client.fetch("t", 1, version=version, isolation_level=isolation)
                assert read_values(row["records"]) == [b"one", b"two"]  # the whole batch that holds the offset
                assert row["aborted_transactions"] == aborted
            assert len((await client.fetch("t", 2, version=version))["records"]) == 0

    run(scenario)


@pytest.mark.parametrize("compression", range(5))
def test_compressed_batches_are_kept_as_they_are(tmp_path: Path, compression: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            small, large = (
                make_batch(b"s" * 10, compression=compression),
                make_batch(*INCOMPRESSIBLE, compression=compression),
            )
            assert (await client.produce("t", small))["base_offset"] == 0
            assert (await client.produce("t", large))["base_offset"] == 1
            records = (await client.fetch("t", 0))["records"]
            assert len(records) == len(small) + len(large)
            assert [batch.compression for batch in check(bytes(records), FAR)] == [compression] * 2
            assert read_values(records) == [b"s" * 10, *INCOMPRESSIBLE]

    run(scenario)


INCOMPRESSIBLE = [
    struct.pack(">250I", *((i * 2654435761 + j * j * 40503) & 0xFFFFFFFF for j in range(250))) for i in range(100)
]


def test_a_topic_may_want_another_compression(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", compression_type="lz4")
            for compression in range(5):
                assert (await client.produce("t", make_batch(b"a" * 100, compression=compression)))["error_code"] == 0
            records = (await client.fetch("t", 0))["records"]
            assert [batch.compression for batch in check(bytes(records), FAR)] == [3] * 5
            assert read_values(records) == [b"a" * 100] * 5

    run(scenario)


def test_batches_of_several_partitions_and_topics(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("a", 2)
            await client.create("b", 1)
            topic_data = [
                {"name": "a", "partition_data": [{"index": i, "records": make_batch(b"a%d" % i)} for i in (1, 0, 7)]},
                {"name": "none", "partition_data": [{"index": 0, "records": make_batch(b"x")}]},
                {"name": "b", "partition_data": [{"index": 0, "records": make_batch(b"b0")}]},
            ]
            answer = await client.ask(PRODUCE, 9, acks=-1, timeout_ms=1000, topic_data=topic_data)
            codes = [[row["error_code"] for row in topic["partition_responses"]] for topic in answer["responses"]]
            assert codes == [[0, 0, 3], [3], [0]]
            assert read_values((await client.fetch("a", 0, index=1))["records"]) == [b"a1"]

    run(scenario)


def _with_magic(magic: int) -> bytearray:
    batch = make_batch(b"x")
    batch[16] = magic
    return batch


def _with_bad_crc() -> bytearray:
    batch = make_batch(b"x" * 100)
    batch[-1] ^= 1
    return batch


def _with_lying_count() -> bytearray:
    """One record, 2^31-1 announced; the checksum is right."""
    batch = make_batch(b"x")
    batch[57:61] = b"\x7f\xff\xff\xff"
    batch[23:27] = b"\x7f\xff\xff\xfe"
    return _with_crc(batch)


def _with_control_bit() -> bytearray:
    batch = make_batch(b"x")
    batch[22] |= 0x20
    return _with_crc(batch)


def _with_crc(batch: bytearray) -> bytearray:
    batch[17:21] = struct.pack(">I", crc32c(bytes(batch[21:])))
    return batch


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit (Castagnoli polynomial, reflected)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        (None, "INVALID_RECORD"),
        (b"", "INVALID_RECORD"),
        (b"\0", "CORRUPT_MESSAGE"),
        (make_batch(b"x")[:-1], "CORRUPT_MESSAGE"),
        (make_batch(b"x") + b"\0", "CORRUPT_MESSAGE"),
        (make_batch(b"x") + make_batch(b"y"), "INVALID_RECORD"),
        (_with_magic(0), "INVALID_RECORD"),
        (_with_magic(1), "INVALID_RECORD"),
        (_with_magic(3), "INVALID_RECORD"),
        (_with_bad_crc(), "CORRUPT_MESSAGE"),
        (_with_lying_count(), "INVALID_RECORD"),
        (_with_control_bit(), "INVALID_RECORD"),
        (make_batch(b"x" * 2_000_000), "MESSAGE_TOO_LARGE"),
        (make_batch(b"x", time_ms=1 << 50), "INVALID_TIMESTAMP"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_records_have_their_code_and_store_nothing(tmp_path: Path, records: Any, fault: str) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            row = await client.produce("t", records)
            assert row["error_code"] == CODES[fault], row["error_message"]
            assert row["base_offset"] == -1
            assert row["error_message"]
            assert (await client.fetch("t", 0))["high_watermark"] == 0

    run(scenario)


def test_zstd_needs_produce_7(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            batch = make_batch(b"x" * 100, compression=4)
            assert (await client.produce("t", batch, version=6))["error_code"] == CODES["UNSUPPORTED_COMPRESSION_TYPE"]
            assert (await client.produce("t", batch, version=7))["error_code"] == 0

    run(scenario)


def test_refusals_of_a_whole_produce(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            row = await client.produce("t", make_batch(b"x"), acks=2)
            assert row["error_code"] == CODES["INVALID_REQUIRED_ACKS"]
            part = {"name": "t", "partition_data": [{"index": 0, "records": make_batch(b"x")}]}
            answer = await client.ask(PRODUCE, 9, transactional_id="tx", acks=-1, timeout_ms=1, topic_data=[part])
            row = answer["responses"][0]["partition_responses"][0]
            assert row["error_code"] == CODES["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"]
            assert (await client.fetch("t", 0))["high_watermark"] == 0

    run(scenario)


def test_more_copies_than_there_are_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", min_insync_replicas="2")
            assert (await client.produce("t", make_batch(b"x")))["error_code"] == CODES["NOT_ENOUGH_REPLICAS"]
            assert (await client.produce("t", make_batch(b"x"), acks=1))["error_code"] == 0

    run(scenario)


def test_acks_0_has_no_answer_and_an_error_closes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            client.send_produce("t", make_batch(b"a"), acks=0)
            client.send_produce("t", make_batch(b"b"), acks=0)
            assert (await client.produce("t", make_batch(b"c")))["base_offset"] == 2
            client.send_produce("nowhere", make_batch(b"d"), acks=0)
            assert await client.ended() == b""

    run(scenario)


def test_an_idempotent_producer_is_answered_the_same_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            known = await client.ask(INIT_PRODUCER_ID, 4, transaction_timeout_ms=1)
            producer = (known["producer_id"], known["producer_epoch"])
            first, second = (make_batch(b"x", b"y", producer=(*producer, sequence)) for sequence in (0, 2))
            for batch, offset in ((first, 0), (second, 2), (first, 0), (second, 2)):
                row = await client.produce("t", bytes(batch))
                assert (row["error_code"], row["base_offset"]) == (0, offset)
            row = await client.produce("t", make_batch(b"z", producer=(*producer, 9)))
            assert row["error_code"] == CODES["OUT_OF_ORDER_SEQUENCE_NUMBER"]
            assert (await client.fetch("t", 0))["high_watermark"] == 4

    run(scenario)


def test_a_durability_that_does_not_come_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            partition = server.broker.partition("t", 0)
            append = type(partition).append
            monkeypatch.setattr(
                type(partition), "append", lambda *given, **named: append(*given, **named)._replace(done=never)
            )
            row = await client.produce("t", make_batch(b"x"), timeout_ms=20)
            assert row["error_code"] == CODES["REQUEST_TIMED_OUT"]
            assert not never.cancelled()  # the future is shared with others

    run(scenario)


def test_a_long_poll_is_woken_by_a_produce(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            consumer, producer = await server.connect(), await server.connect()
            await producer.create("t", 2)
            consumer.send_fetch("t", 0, max_wait_ms=90_000)
            await producer.produce("t", make_batch(b"other partition"), index=1)
            await producer.produce("t", make_batch(b"hello"))
            row = (await consumer.reply())["responses"][0]["partitions"][0]
            assert read_values(row["records"]) == [b"hello"]

    run(scenario)


def test_min_bytes_waits_for_enough(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            consumer, producer = await server.connect(), await server.connect()
            await producer.create("t")
            batch = make_batch(b"x" * 100)
            consumer.send_fetch("t", 0, max_wait_ms=90_000, min_bytes=2 * len(batch) + 1)
            for _ in range(3):
                await producer.produce("t", batch)
            row = (await consumer.reply())["responses"][0]["partitions"][0]
            assert len(read_values(row["records"])) == 3
            assert len((await consumer.fetch("t", 3, max_wait_ms=20, min_bytes=1))["records"]) == 0

    run(scenario)


def test_fetch_limits_hold_but_one_batch_always_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            batch = make_batch(b"x" * 1000)
            for _ in range(5):
                await client.produce("t", batch)
            for limits, count in (
                ({"partition_max_bytes": 1}, 1),
                ({"max_bytes": 1}, 1),
                ({"partition_max_bytes": 3 * len(batch) + 5}, 3),
                ({"max_bytes": 2 * len(batch)}, 2),
                ({"max_bytes": 0}, 0),
            ):
                assert len((await client.fetch("t", 0, **limits))["records"]) == count * len(batch), limits

    run(scenario)


async def _fault_of_fetch(client: RawClient, offset: int, **options: Any) -> str:
    row = await client.fetch("t", offset, max_wait_ms=90_000, **options)
    return next(name for name, code in CODES.items() if code == row["error_code"])


def test_refusals_of_fetch_come_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"x"))
            assert await _fault_of_fetch(client, 2) == "OFFSET_OUT_OF_RANGE"
            assert await _fault_of_fetch(client, -1) == "OFFSET_OUT_OF_RANGE"
            assert await _fault_of_fetch(client, 0, index=1) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await _fault_of_fetch(client, 0, current_leader_epoch=99) == "UNKNOWN_LEADER_EPOCH"
            assert await _fault_of_fetch(client, 0, replica_id=1) == "INVALID_REQUEST"
            client.send_fetch("t", 0, session_id=5, session_epoch=1)
            answer = await client.reply()
            assert (answer["error_code"], answer["responses"]) == (70, [])

    run(scenario)


def test_an_older_epoch_is_fenced(tmp_path: Path) -> None:
    async def scenario(data: Path, epoch: int) -> None:
        async with kafka_server(data) as server:
            client = await server.connect()
            await client.create("t")
            server.broker.partition("t", 0).leader_epoch = epoch
            assert await _fault_of_fetch(client, 0, current_leader_epoch=epoch - 1) == "FENCED_LEADER_EPOCH"

    run(lambda: scenario(tmp_path, 3))


def test_deleting_a_topic_wakes_its_long_polls(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client, other = await server.connect(), await server.connect()
            await client.create("t")
            client.send_fetch("t", 0, max_wait_ms=90_000)
            await other.fetch("t", 0)
            topic = server.broker.topics.get("t")
            assert topic is not None
            await server.broker.topics.delete(topic)
            row = (await client.reply())["responses"][0]["partitions"][0]
            assert row["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]

    run(scenario)


def test_heavy_batches_keep_their_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", max_message_bytes="10000000")
            heavy = make_batch(*[b"h" * 1000] * 2000)
            squeezed = make_batch(*INCOMPRESSIBLE, compression=1)
            for batch in (heavy, make_batch(b"light"), squeezed, make_batch(b"light"), heavy, make_batch(b"light")):
                client.send_produce("t", batch)
            rows = [(await client.reply())["responses"][0]["partition_responses"][0] for _ in range(6)]
            assert [row["error_code"] for row in rows] == [0] * 6
            assert [row["base_offset"] for row in rows] == [0, 2000, 2001, 2101, 2102, 4102]

    run(scenario)


def test_a_bad_heavy_batch_does_not_stop_the_ones_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            bad = make_batch(*[b"h" * 1000] * 800)
            bad[-1] ^= 1
            client.send_produce("t", bad)
            client.send_produce("t", make_batch(b"good"))
            rows = [(await client.reply())["responses"][0]["partition_responses"][0] for _ in range(2)]
            assert [row["error_code"] for row in rows] == [CODES["CORRUPT_MESSAGE"], 0]
            assert rows[1]["base_offset"] == 0

    run(scenario)


def test_a_fetch_goes_on_while_produces_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            for _ in range(20):
                client.send_produce("t", make_batch(b"x" * 100))
            client.send(FETCH, 12, {"topics": [], "max_wait_ms": 0})
            for offset in range(20):
                row = (await client.reply())["responses"][0]["partition_responses"][0]
                assert row["base_offset"] == offset
            assert (await client.reply())["responses"] == []

    run(scenario)


def test_every_served_version_is_in_its_shape() -> None:
    for route in ROUTES.values():
        assert route.message.lowest <= route.lowest <= route.highest <= route.message.highest
