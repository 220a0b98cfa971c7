"""Too few copies: what one server alone has is neither shown nor acknowledged, however the broker learned of it."""

from collections.abc import Callable

from broker_process import BrokerProcess
from faults.redis.log import wait_for_line
from faults.redis.proxy import RedisProxy
from kafka_server import error_of, make_batch, run
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]


def test_what_the_only_replica_missed_is_shown_when_another_one_has_it(serve: Serve, start_redis: StartRedis) -> None:
    """F15 with min.insync.replicas=2, and nobody to take the replica's place at first."""
    master, replica, spare = (start_redis(appendonly="yes") for _ in range(3))
    replica.follow(master)
    with RedisProxy(master.port) as proxy:
        broker = serve(proxy.url)

        async def scenario() -> None:
            async with connect(broker.port) as client:
                await client.create("t", min_insync_replicas="2")
                producer = await start_producer(client)

                async def produce(sequence: int, acks: int = -1) -> str:
                    batch = make_batch(b"%d" % sequence, producer=(*producer, sequence))
                    # Answered before the store gives up on copies, after 10 s: from then on acks=all is refused.
                    return error_of(await client.produce("t", batch, acks=acks, timeout_ms=9_000))

                async def read() -> list[bytes]:
                    return [value for _, value in await read_places(client, "t")]

                while await produce(0):
                    pass
                replica.kill()
                while (refused := await produce(1)) != "NOT_ENOUGH_REPLICAS":
                    assert refused in ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT"), refused
                assert await produce(1, acks=1) == ""
                wait_for_line(broker, "asks for 1 replica")
                for _ in range(3):
                    assert await produce(1) == "NOT_ENOUGH_REPLICAS"
                    assert await produce(2, acks=1) == ""
                    assert await read() == [b"0"]
                spare.follow(master)
                while refused := await produce(1):
                    assert refused == "NOT_ENOUGH_REPLICAS"
                assert await read() == [b"0", b"1", b"2"]

        run(scenario)
