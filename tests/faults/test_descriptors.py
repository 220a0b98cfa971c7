"""Few file descriptors, many partitions and connections: newcomers wait outside, and the others are served."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.redis.load import at_work
from kafka_server import RawClient, make_batch, run
from raw_connection import connect, read_log
from redis_server import free_port

PARTITIONS = 120
CONNECTIONS = 150
OPERATORS = 64


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    limit = ("prlimit", "--nofile=100:100")
    http = ("--listen", f"http://127.0.0.1:{free_port()}")
    with BrokerProcess(tmp_path / "data", "log.segment.bytes=1024", before=limit, arguments=http) as running:
        yield running


def test_a_flood_of_connections_harms_nobody_inside(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            assert (await client.create("t", PARTITIONS))["error_code"] == 0
            for index in range(PARTITIONS):
                assert (await client.produce("t", make_batch(b"before"), index=index))["error_code"] == 0
            http = int(broker.arguments[1].rpartition(":")[2])
            crowd = []
            for number in range(OPERATORS):
                address = (f"127.0.0.{2 + number % 4}", 0)  # each may have 16
                crowd.append(await asyncio.open_connection("127.0.0.1", http, local_addr=address))
                crowd[-1][1].write(b"G")  # a request begins: no newcomer takes the place
            crowd += [await asyncio.open_connection("127.0.0.1", broker.port) for _ in range(CONNECTIONS)]
            try:
                await work(client)
            finally:
                for _, writer in crowd:
                    writer.close()
            async with asyncio.timeout(120):
                while not await enter():
                    await asyncio.sleep(0.05)

    async def work(client: RawClient) -> None:
        for value in (b"during", b"x" * 1000):  # the second begins a new segment file
            for index in range(PARTITIONS):
                row = await client.produce("t", make_batch(value), index=index)
                assert row["error_code"] == 0, row
        for index in range(PARTITIONS):
            assert await read_log(client, "t", index) == [b"before", b"during", b"x" * 1000]
        assert (await client.create("another", 5))["error_code"] == 0

    async def enter() -> bool:
        """Whether a newcomer is served: that may take a moment after others have left."""
        async with connect(broker.port) as newcomer:
            try:
                return await read_log(newcomer, "t", 7) == [b"before", b"during", b"x" * 1000]
            except (asyncio.IncompleteReadError, ConnectionError):
                return False

    with at_work(broker, segment_bytes=str(1 << 20)):
        run(scenario)
    assert broker.stop() == 0
    log = "".join(broker.log)
    why = (
        "this process may open too few files for max.connections=10000: 100 leave room for 21; "
        "raise the limit of open files (`ulimit -n`, LimitNOFILE=) to 13482"
    )
    assert f'"{why}"' in log
    assert f"closed a connection of 127.0.0.1 that sent no request: {why}" in log
    assert "max.connections=21" not in log, "nobody has set it"
    assert "Traceback" not in log
