"""Produce over a socket: what is sent comes back, in the order it was sent."""

import asyncio
import struct
from pathlib import Path

import pytest

from batches import read_values
from kafka_server import INIT_PRODUCER_ID, PRODUCE, kafka_server, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_reference.batch import validate_batches

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
            assert [batch.compression for batch in validate_batches(bytes(records), FAR)] == [compression] * 2
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
            assert [batch.compression for batch in validate_batches(bytes(records), FAR)] == [3] * 5
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
            monkeypatch.setattr(type(partition), "append", lambda *given: (*append(*given)[:3], never))
            row = await client.produce("t", make_batch(b"x"), timeout_ms=20)
            assert row["error_code"] == CODES["REQUEST_TIMED_OUT"]
            assert not never.cancelled()  # the future is shared with others
            never.set_result(None)

    run(scenario)


@pytest.mark.parametrize("partitions", [1, 2, 300])
def test_what_the_store_has_of_an_answered_request_counts_as_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """With a short timeout, a client could fill the memory with batches that wait for a slow store."""

    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", partitions)
            late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            partition = server.broker.partition("t", 0)
            append = type(partition).append
            monkeypatch.setattr(type(partition), "append", lambda *given: (*append(*given)[:3], late))
            sizes = [100_000, *[10] * (partitions - 1)]
            rows = [{"index": index, "records": make_batch(b"x" * size)} for index, size in enumerate(sizes)]
            topics = [{"name": "t", "partition_data": rows}]
            for times in (1, 2):
                answer = await client.ask(PRODUCE, 9, acks=1, timeout_ms=0, topic_data=topics)
                codes = {row["error_code"] for row in answer["responses"][0]["partition_responses"]}
                assert codes == {CODES["REQUEST_TIMED_OUT"]}
                assert server.server.pool.used > 100_000 * times
            client.writer.close()
            while server.server.connections:
                await asyncio.sleep(0.001)
            assert server.server.pool.used > 200_000
            late.set_result(None)
            await asyncio.sleep(0)
            assert server.server.pool.used == 0

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


def test_what_comes_behind_a_heavy_batch_in_its_request_keeps_its_turn(tmp_path: Path) -> None:
    """One partition, several times in a request: appended in their order, the bad one answered for itself."""

    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 5, max_message_bytes="10000000")
            heavy, broken = make_batch(*[b"h" * 1000] * 2000), make_batch(b"broken")
            broken[-1] ^= 1
            batches = [
                (0, make_batch(b"first")),
                (1, heavy),
                (2, broken),
                (3, make_batch(b"last")),
                (4, broken),
                (5, heavy),
            ]
            rows = [{"index": index, "records": bytes(batch)} for index, batch in batches]
            topic = {"name": "t", "partition_data": rows}
            client.send(PRODUCE, 9, {"acks": 1, "timeout_ms": 10_000, "topic_data": [topic]})
            client.send_produce("t", make_batch(b"next"), index=1)
            rows = (await client.reply())["responses"][0]["partition_responses"]
            corrupt, unknown = CODES["CORRUPT_MESSAGE"], CODES["UNKNOWN_TOPIC_OR_PARTITION"]
            assert [row["index"] for row in rows] == [0, 1, 2, 3, 4, 5]
            assert [row["error_code"] for row in rows] == [0, 0, corrupt, 0, corrupt, unknown]
            assert [row["base_offset"] for row in rows] == [0, 0, -1, 0, -1, -1]
            assert (await client.reply())["responses"][0]["partition_responses"][0]["base_offset"] == 2000

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


def test_every_served_version_is_in_its_shape() -> None:
    for route in ROUTES.values():
        assert route.message.lowest <= route.lowest <= route.highest <= route.message.highest
