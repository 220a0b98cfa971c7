"""Whether a broker starts and takes a record, over each store: `python -m faults.mutants.alive`, in the tree meant."""

import tempfile
from pathlib import Path

from broker_process import BrokerProcess
from kafka_server import make_batch, run
from raw_connection import connect
from redis_server import PROGRAMS, RedisServer, find_program


def main() -> None:
    """Raises `AssertionError` if one does not."""

    async def take() -> None:
        async with connect(broker.port) as client:
            for row in (await client.create("t"), await client.produce("t", make_batch(b"kept"))):
                assert row["error_code"] == 0, row

    with (
        tempfile.TemporaryDirectory(prefix="korvet-alive-") as directory,
        RedisServer(find_program(PROGRAMS[0]), Path(directory) / "redis", appendonly="yes") as server,
    ):
        for store in (None, server.url):
            with BrokerProcess(Path(directory) / "data", store=store) as broker:
                run(take)


if __name__ == "__main__":
    main()
