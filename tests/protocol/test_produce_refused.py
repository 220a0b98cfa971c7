"""Produce over a socket: what is not taken, and the code it is refused with."""

import struct
from pathlib import Path
from typing import Any

import pytest

from kafka_server import PRODUCE, kafka_server, make_batch, run
from korvet_fast.wire.kafka.errors import CODES


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
    ("records", "error"),
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
def test_bad_records_have_their_code_and_store_nothing(tmp_path: Path, records: Any, error: str) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            row = await client.produce("t", records)
            assert row["error_code"] == CODES[error], row["error_message"]
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
