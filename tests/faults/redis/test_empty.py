"""A Redis that comes back with nothing (reliability F05, F21): told aloud, and never taken for the beginning."""

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from faults.redis.load import AGAIN
from faults.redis.log import wait_for_line
from faults.redis.proxy import RedisProxy
from faults.redis.records import Records, find_topic_id, produce_to_leader, run_and_return
from kafka_server import RawClient, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, find_leaders, read_places
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]


@pytest.mark.parametrize("command", [["serve", "--listen", "kafka://127.0.0.1:0"], ["doctor"]], ids=lambda c: c[0])
def test_a_promise_that_the_server_cannot_keep_is_not_made(start_redis: StartRedis, command: list[str]) -> None:
    """F05: without an append-only file there is no `durability=fsync`."""
    server = start_redis(appendonly="no")
    done = subprocess.run(
        [sys.executable, "-m", "korvet_fast", *command, "--store", server.url, "--set", "durability=fsync"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "durability=fsync cannot be kept" in said
    assert "appendonly yes" in said
    assert "Traceback" not in said


def test_a_topic_that_wants_more_than_the_server_gives_is_answered_in_words(
    serve: Serve, start_redis: StartRedis
) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t", durability="fsync")
            row = await client.produce("t", make_batch(b"not taken"))
            assert row["error_code"] == CODES["NOT_ENOUGH_REPLICAS"]
            assert "appendonly yes" in row["error_message"]
            assert await read_places(client, "t") == []
            assert (await client.produce("t", make_batch(b"taken"), acks=1))["error_code"] == 0
            server.call("CONFIG", "SET", "appendonly", "yes")
            server.wait_for("persistence", aof_rewrite_in_progress="0", aof_rewrite_scheduled="0")
            while (row := await client.produce("t", make_batch(b"durable")))["error_code"]:
                assert row["error_code"] == CODES["NOT_ENOUGH_REPLICAS"]
            assert [value for _, value in await read_places(client, "t")] == [b"taken", b"durable"]

    server = start_redis(appendonly="no")
    broker = serve(server.url)
    run(scenario)


def test_a_server_without_a_file_comes_back_empty(serve: Serve, start_redis: StartRedis) -> None:
    """F05."""
    server = start_redis(appendonly="no")
    records = Records(serve(server.url))
    server.restart()
    records.check()


def test_a_server_that_somebody_empties(serve: Serve, start_redis: StartRedis) -> None:
    """FLUSHALL: the same process with the same replication history, and nothing in it."""
    server = start_redis(appendonly="yes")
    records = Records(serve(server.url))
    before = run_and_return(records.broker.port, find_topic_id)
    server.call("FLUSHALL")
    wait_for_line(records.broker, "was emptied while it ran")
    records.check()
    assert run_and_return(records.broker.port, find_topic_id) == before
    refused = {CODES["OFFSET_OUT_OF_RANGE"]}
    assert run_and_return(records.broker.port, lambda client: read_errors(client, records.places)) == refused
    records.broker.stop()
    records.broker.start()  # the server knows it too
    assert run_and_return(records.broker.port, lambda client: read_errors(client, records.places)) == refused


@pytest.mark.parametrize("layout", ["batches", "entries"])
@pytest.mark.parametrize("killed", [True, False])
def test_a_stream_that_somebody_deletes(serve: Serve, start_redis: StartRedis, layout: str, killed: bool) -> None:
    """DEL: told, and consumers below are told too. `killed`: the broker dies before it has noticed."""

    async def write(client: RawClient) -> list[int]:
        await client.create("t", storage_layout=layout)
        rows = [await client.produce("t", make_batch(b"%d" % number)) for number in range(3)]
        assert not any(row["error_code"] for row in rows)
        return [row["base_offset"] for row in rows]

    server = start_redis(appendonly="yes")
    broker = serve(server.url, "log.retention.check.interval.ms=500")
    offsets = run_and_return(broker.port, write)
    assert server.call("DEL", "korvet:t:0") == 1
    if killed:
        broker.kill()
        broker.start()
    line = wait_for_line(broker, "records were lost")
    first = 0 if killed else offsets[0]
    assert f"t:0: records were lost: offsets {first} to {offsets[-1]}" in line
    places = [(offset, b"") for offset in offsets]
    assert run_and_return(broker.port, lambda client: read_errors(client, places)) == {CODES["OFFSET_OUT_OF_RANGE"]}
    broker.stop()
    assert "".join(broker.log).count("records were lost") == 1


async def read_errors(client: RawClient, places: list[tuple[int, bytes]]) -> set[int]:
    """The errors of who stands at offsets that are lost."""
    found = set()
    for offset, _ in places:
        while (code := (await client.fetch("t", offset))["error_code"]) in AGAIN:
            await asyncio.sleep(0.02)
        found.add(code)
    return found


@pytest.mark.parametrize("copied", [True, False])
def test_an_empty_replica_takes_the_masters_place(serve: Serve, start_redis: StartRedis, copied: bool) -> None:
    """F21: it followed to the end, and its data are gone; or its first copy of them stands still."""
    master, empty = (start_redis(appendonly="yes", replica_read_only="no") for _ in range(2))
    with RedisProxy(master.port, frames=False) as link, RedisProxy(master.port) as proxy:
        if not copied:
            link.hold()
        empty.call("REPLICAOF", "127.0.0.1", link.port)
        records = Records(serve(proxy.url))
        if copied:
            empty.wait_for_stream(master)
            link.hold()
            assert empty.call("DBSIZE") > 0
            empty.call("FLUSHALL")
        assert (empty.info("replication")["role"], empty.call("DBSIZE")) == ("slave", 0)
        master.kill()
        empty.promote()
        proxy.target = empty.port
        proxy.reset_all()
        records.check()


def test_brokers_whose_server_somebody_empties_do_not_take_over_from_each_other(
    serve: Serve, start_redis: StartRedis
) -> None:
    """Each of them alone knows which offsets of its partitions it has acknowledged: none is given out again."""

    async def scenario() -> None:
        async with connect(brokers[0].port) as client:
            await client.create("t", 8)
            while len(set(leaders := await find_leaders(client, "t"))) < 2 or -1 in leaders:
                await asyncio.sleep(0.02)
        before = [await produce_to_leader(brokers, index) for index in range(8) for _ in range(3)]
        server.call("FLUSHALL")
        for broker in brokers:
            await asyncio.to_thread(wait_for_line, broker, "was emptied while it ran")
        after = [await produce_to_leader(brokers, index) for index in range(8)]
        assert all(offset > last for offset, last in zip(after, before[2::3], strict=True)), (before, after)

    server = start_redis(appendonly="yes")
    brokers = [serve(server.url) for _ in range(2)]
    run(scenario)
