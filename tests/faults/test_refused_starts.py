"""Places that a broker must not keep records in: it does not start there, and says why."""

from pathlib import Path

import pytest

from broker_process import BrokerProcess
from kafka_server import make_batch, run
from raw_connection import connect, read_log
from redis_server import PROGRAMS, RedisServer, find_program, free_port


def refuse(broker: BrokerProcess) -> str:
    """What a broker says that does not start."""
    try:
        with pytest.raises(AssertionError, match="did not become ready"):
            broker.start()
    finally:
        broker.kill()
    assert "Traceback" not in "".join(broker.log)
    return "".join(broker.log)


def test_the_directory_of_a_broker_that_runs(tmp_path: Path) -> None:
    """Two writers of one log would take each other's offsets. Once the first is killed, the directory is free."""

    async def write() -> None:
        async with connect(first.port) as client:
            await client.create("t")
            for number in range(3):
                assert (await client.produce("t", make_batch(b"%d" % number)))["base_offset"] == number

    async def read() -> None:
        async with connect(second.port) as client:
            assert await read_log(client, "t") == [b"0", b"1", b"2"]

    first, second = BrokerProcess(tmp_path / "data"), BrokerProcess(tmp_path / "data")
    with first:
        assert "is in use by" in refuse(second)
        run(write)
        first.kill()
        with second:
            run(read)


def test_the_directory_of_a_broker_whose_lock_file_was_deleted(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data"):
        (tmp_path / "data" / ".lock").unlink()
        for arguments in ((), ("--workers", "2", "--worker-ports", str(free_port()))):
            said = refuse(BrokerProcess(tmp_path / "data", arguments=arguments))
            assert (
                f"is in use by a process that .lock does not name; stop it: `fuser -v {tmp_path}/data` names it" in said
            )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_server_that_may_evict(program: str, tmp_path: Path) -> None:
    with RedisServer(
        find_program(program), tmp_path / "redis", appendonly="yes", maxmemory_policy="allkeys-lru"
    ) as one:
        broker = BrokerProcess(tmp_path / "unused", store=one.url)
        assert "its maxmemory-policy is allkeys-lru" in refuse(broker)
        one.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
        with broker:
            pass
