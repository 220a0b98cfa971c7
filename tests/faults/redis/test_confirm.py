"""An answer that a client cannot take back needs the replicas: without them, another broker may lead by now."""

from collections.abc import Callable

from broker_process import BrokerProcess
from faults.redis.proxy import RedisProxy
from kafka_server import RawClient, error_of, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
OFFSET_FOR_LEADER_EPOCH = 23


async def ask_for_epoch(client: RawClient, epoch: int) -> tuple[int, int, int]:
    """(error code, leader epoch, end offset) for the topic's only partition."""
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
    topics = [{"topic": "t", "partitions": [partition]}]
    answer = await client.ask(OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=topics)
    row = answer["topics"][0]["partitions"][0]
    return row["error_code"], row["leader_epoch"], row["end_offset"]


def test_a_broker_that_finds_no_replica_denies_nothing(serve: Serve, start_redis: StartRedis) -> None:
    """With min.insync.replicas=2. A sequence that is not the next, and an epoch never heard of."""
    master, *replicas = (start_redis(appendonly="yes") for _ in range(3))
    for replica in replicas:
        replica.follow(master)
    with RedisProxy(master.port) as proxy:
        broker = serve(proxy.url)

        async def scenario() -> None:
            async with connect(broker.port) as client:
                await client.create("t", min_insync_replicas="2")
                producer = await start_producer(client)

                async def produce(sequence: int) -> str:
                    return error_of(await client.produce("t", make_batch(b"x", producer=(*producer, sequence))))

                while refused := await produce(0):
                    assert refused in ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS")
                lost = proxy.lose_reply(b"WAIT")
                assert await produce(5) == "NOT_LEADER_OR_FOLLOWER"
                assert lost.is_set()
                assert await produce(5) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
                lost = proxy.lose_reply(b"WAIT")
                code, _, _ = await ask_for_epoch(client, 7)
                assert code == CODES["NOT_LEADER_OR_FOLLOWER"]
                assert lost.is_set()
                assert await ask_for_epoch(client, 7) == (0, -1, -1)
                assert await produce(1) == ""

        run(scenario)
