"""The proxy itself: what it cuts was carried out, or not, exactly as the tests that stand on it believe."""

import socket
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from faults.redis.proxy import WHOLE, RedisProxy
from redis_server import RedisServer


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[RedisProxy]:
    with RedisProxy(redis_server.port) as running:
        yield running


@pytest.fixture
def client(proxy: RedisProxy) -> Iterator[redis.Redis]:
    with redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 0), socket_timeout=30, protocol=2) as found:
        yield found


def test_everything_passes(proxy: RedisProxy) -> None:
    with redis.Redis(port=proxy.port, socket_timeout=30, protocol=2) as patient:
        pipeline = patient.pipeline(transaction=False)
        for number in range(500):
            pipeline.rpush("list", b"\r\n*3\r\n" * number)
        assert pipeline.execute() == list(range(1, 501))
        assert patient.lrange("list", 0, -1) == [b"\r\n*3\r\n" * number for number in range(500)]


@pytest.mark.parametrize(
    ("of", "passing", "applied"),
    [("request", 20, False), ("request", WHOLE, True), ("reply", 0, True), ("reply", 2, True)],
)
def test_a_cut_is_where_it_was_asked_for(
    client: redis.Redis, proxy: RedisProxy, redis_server: RedisServer, of: str, passing: int, applied: bool
) -> None:
    client.rpush("list", "before")
    cut = (proxy.cut_request if of == "request" else proxy.cut_reply)(b"RPUSH", passing)
    with pytest.raises(redis.ConnectionError):
        client.rpush("list", "value")
    assert cut.wait(60)
    assert redis_server.call("LLEN", "list") == 1 + applied
    assert client.rpush("list", "after") == 2 + applied


def test_what_was_held_arrives_late(proxy: RedisProxy, redis_server: RedisServer) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), 30) as impatient:
        impatient.sendall(b"PING\r\n")
        assert impatient.recv(100) == b"+PONG\r\n"  # the connection is made, both ways
        proxy.hold()
        impatient.sendall(b"*3\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n$5\r\nvalue\r\n")
        impatient.settimeout(0.2)  # how long is of no matter: no answer can come
        with pytest.raises(TimeoutError):
            impatient.recv(100)
    assert redis_server.call("LLEN", "list") == 0
    proxy.release()
    assert redis_server.call("BLPOP", "list", 10) == [b"list", b"value"]
