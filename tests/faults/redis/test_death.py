"""The Redis server dies, pauses or loads slowly under a broker at work (reliability F03, F11, F13)."""

import time
from collections.abc import Callable

from broker_process import BrokerProcess
from faults.redis.conftest import every_pair
from faults.redis.load import AGAIN, Load, create_topic, read_log
from faults.redis.refusals import wait_for_refusal
from kafka_server import METADATA, make_batch, run
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]


@every_pair
def test_kill_9_loses_nothing_that_is_fsynced(serve: Serve, start_redis: StartRedis) -> None:
    """F03."""
    server = start_redis(appendonly="yes", appendfsync="always")
    broker = serve(server.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        for _ in range(3):
            load.wait_for(100)
            server.restart()
        load.wait_for(100)
    assert load.check(broker.port) == set()
    found = read_log(broker.port, "load")
    broker.kill()
    broker.start()
    assert read_log(broker.port, "load") == found


def test_while_the_server_is_down_nothing_is_acknowledged(serve: Serve, redis_server: RedisServer) -> None:
    """F03: the answer is to try again, and whoever does gets what it asked for, once."""

    async def scenario() -> None:
        async with connect(broker.port) as client, connect(broker.port) as other:
            await client.create("t")
            producer = await start_producer(client)
            first = (await client.produce("t", make_batch(b"first", producer=(*producer, 0))))["base_offset"]
            redis_server.kill()
            batch = bytes(make_batch(b"second", producer=(*producer, 1)))
            client.send_produce("t", bytearray(batch))
            answer = await other.ask(METADATA, 9, topics=[{"name": "t"}])
            assert answer["topics"][0]["error_code"] == 0  # clients keep what they know of it
            redis_server.start()
            row = (await client.reply())["responses"][0]["partition_responses"][0]
            while row["error_code"]:
                assert row["error_code"] in AGAIN, row
                row = await client.produce("t", bytearray(batch))
            assert row["base_offset"] > first
            assert await read_places(client, "t") == [(first, b"first"), (row["base_offset"], b"second")]

    broker = serve(redis_server.url)
    run(scenario)


def test_a_pause_leaves_nothing_doubled(serve: Serve, redis_server: RedisServer) -> None:
    """F11: calls time out, and what they asked for is carried out when the server wakes."""
    broker = serve(f"{redis_server.url}?socket_timeout=1.5")
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        for _ in range(3):
            load.wait_for(50)
            redis_server.pause()
            time.sleep(3)  # longer than socket_timeout: this is the fault, nothing is waited for
            redis_server.resume()
        load.wait_for(50)
    assert load.check(broker.port) == set()


def test_a_server_that_loads_slowly_keeps_its_topics(serve: Serve, redis_server: RedisServer) -> None:
    """F13."""

    async def look() -> None:
        async with connect(broker.port) as client:
            answer = await client.ask(METADATA, 9, topics=[{"name": "load"}], allow_auto_topic_creation=True)
            assert answer["topics"][0]["error_code"] == 0
            assert len(answer["topics"][0]["partitions"]) == 2

    broker = serve(redis_server.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(100)
        redis_server.call("DEBUG", "POPULATE", 3000, "filler", 100)
        redis_server.call("BGREWRITEAOF")
        redis_server.wait_for("persistence", aof_rewrite_in_progress="0", aof_rewrite_scheduled="0")
        load.wait_for(100)
        redis_server.kill()
        # Ten milliseconds for each key: it loads for half a minute, unless it is told that it shall be quick.
        redis_server.options |= {"key-load-delay": 10_000, "loading-process-events-interval-bytes": 1024}
        redis_server.start(loaded=False)
        wait_for_refusal(redis_server, "LOADING")
        run(look)
        redis_server.call("CONFIG", "SET", "key-load-delay", 0)
        load.wait_for(100)
    assert load.check(broker.port) == set()
    run(look)
