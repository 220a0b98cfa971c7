"""Consumers that read what is on a slow disk only: what others do does not wait for them."""

import asyncio
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from kafka_server import DELETE_RECORDS, RawClient, make_batch, run
from raw_connection import connect
from requirement import require

COUNT = 20
READERS = 12  # more than the store reads side by side


@pytest.fixture(scope="session")
def read_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("reads") / "reads.so"
    source = Path(__file__).with_name("reads.c")
    subprocess.run([require("cc"), "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


async def delete_below(client: RawClient, offset: int) -> dict[str, object]:
    """The partition's row of the answer."""
    topic = {"name": "t", "partitions": [{"partition_index": 0, "offset": offset}]}
    answer = await client.ask(DELETE_RECORDS, 2, topics=[topic], timeout_ms=30_000)
    row: dict[str, object] = answer["topics"][0]["partitions"][0]
    return row


def test_finding_2_14_neither_flushes_nor_deletions_wait_for_cold_reads(tmp_path: Path, read_library: Path) -> None:
    order = tmp_path / "cold"

    async def scenario() -> None:
        async with connect(broker.port) as client, connect(broker.port) as deleter, AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(connect(broker.port)) for _ in range(READERS)]
            await client.create("t")
            for _ in range(COUNT):
                assert (await client.produce("t", make_batch(bytes(1000))))["error_code"] == 0
            order.touch()
            try:
                for reader in readers:
                    reader.send_fetch("t", COUNT - 5, partition_max_bytes=1)
                async with asyncio.timeout(120):
                    while not any(tmp_path.glob("cold.*")):
                        await asyncio.sleep(0.01)
                async with asyncio.timeout(120):
                    deletion = asyncio.create_task(delete_below(deleter, COUNT // 2))
                    for offset in range(COUNT, COUNT + 10):
                        assert (await client.produce("t", make_batch(b"new")))["base_offset"] == offset
                    assert (await deletion)["low_watermark"] == COUNT // 2
                assert order.exists()
            finally:
                order.unlink()
            for reader in readers:
                row = (await reader.reply())["responses"][0]["partitions"][0]
                assert (row["error_code"], row["log_start_offset"]) == (0, COUNT // 2)
                assert len(row["records"]) > 1000

    settings = ("log.segment.bytes=3000",)
    before = ("env", f"LD_PRELOAD={read_library}", f"READ_FAULT={order}")
    with BrokerProcess(tmp_path / "data", *settings, before=before) as broker:
        run(scenario)
