"""A Redis that answers later than a produce waits."""

from collections.abc import Callable

from broker_process import BrokerProcess
from kafka_server import error_of, make_batch, run
from raw_connection import connect, read_places
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]


def test_a_produce_without_an_answer_has_no_time_limit(serve: Serve, redis_server: RedisServer) -> None:
    """As in Kafka: the connection stays, what comes behind it is not kept waiting, and nothing is lost."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t", 2)
            redis_server.pause()
            client.send_produce("t", make_batch(b"0"), acks=0, timeout_ms=0)
            client.send_produce("t", make_batch(b"1"), acks=0, timeout_ms=-1)
            row = await client.produce("t", make_batch(b"2"), acks=1, timeout_ms=0, index=1)
            assert error_of(row) == "REQUEST_TIMED_OUT"
            redis_server.resume()
            assert (await client.produce("t", make_batch(b"3")))["error_code"] == 0
            assert [value for _, value in await read_places(client, "t")] == [b"0", b"1", b"3"]

    broker = serve(redis_server.url)
    run(scenario)
