"""The append-only file is damaged in its middle (reliability F07): Redis refuses it, and nothing is made anew."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from counts import note_values
from faults.redis.load import AGAIN
from faults.redis.records import GROUPS, Records, find_topic_id, read_commit, run_and_return
from faults.redis.test_torn_file import find_file
from kafka_server import METADATA, OFFSET_FETCH, RawClient, make_batch
from raw_connection import read_places
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]


@pytest.fixture
def records(serve: Serve, redis_server: RedisServer) -> Records:
    """Stored, acknowledged, and then Redis was killed and its file damaged where the first of them stands."""
    return Records(serve(redis_server.url))


def damage(file: Path) -> bytes:
    """Spoil the beginning of the first append; returns the file as it was."""
    whole = file.read_bytes()
    at = whole.index(b"\r\n*", whole.index(b"XADD")) + 2
    file.write_bytes(whole[:at] + b"!" + whole[at + 1 :])
    return whole


def test_it_comes_back_whole(records: Records, redis_server: RedisServer) -> None:
    """The file is put right from a copy. The living broker answers nothing but errors till then; none starts."""

    async def ask_in_vain(client: RawClient) -> None:
        answer = await client.ask(METADATA, 12, topics=[{"name": "t"}], allow_auto_topic_creation=True)
        assert (answer["topics"][0]["error_code"], answer["topics"][0]["topic_id"]) == (0, before)
        assert (await client.produce("t", make_batch(b"not taken")))["error_code"] in AGAIN
        topics = [{"name": "t", "partition_indexes": [0]}]
        for group in GROUPS:
            answer = await client.ask(OFFSET_FETCH, 7, group_id=group, topics=topics)
            found = answer["topics"][0]["partitions"][0]["committed_offset"] if not answer["error_code"] else last
            assert found == last

    async def read(client: RawClient) -> list[tuple[int, bytes]]:
        assert [await read_commit(client, group) for group in GROUPS] == [last] * len(GROUPS)
        return await read_places(client, "t")

    broker, last = records.broker, records.places[-1][0]
    before = run_and_return(broker.port, find_topic_id)
    redis_server.kill()
    whole = damage(find_file(redis_server.directory))
    with pytest.raises(AssertionError, match="Bad file format"):
        redis_server.start()
    run_and_return(broker.port, ask_in_vain)
    broker.kill()
    command = [sys.executable, "-m", "korvet_fast", "serve", "--store", redis_server.url]
    done = subprocess.run([*command, "--listen", "kafka://127.0.0.1:0"], capture_output=True, text=True, timeout=240)
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert f"127.0.0.1:{redis_server.port}" in said
    assert "Traceback" not in said
    find_file(redis_server.directory).write_bytes(whole)
    redis_server.start()
    broker.start()
    assert run_and_return(broker.port, find_topic_id) == before
    found = run_and_return(broker.port, read)
    note_values(records.places, found)
    assert found == records.places


def test_what_the_repair_throws_away_is_told(records: Records, redis_server: RedisServer) -> None:
    """`redis-check-aof --fix` cuts the file where it is damaged: all records behind are lost, and offsets go on."""
    redis_server.kill()
    damage(find_file(redis_server.directory))
    manifest = next((redis_server.directory / "appendonlydir").glob("*.manifest"))
    subprocess.run(
        ["redis-check-aof", "--fix", manifest],  # the server's program does what its name says
        executable=redis_server.program,
        input="y\n",
        text=True,
        check=True,
        capture_output=True,
    )
    redis_server.start()
    records.check()
