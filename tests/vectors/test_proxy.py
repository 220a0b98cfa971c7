"""The recording proxy: what passes is untouched and written down, and an end on one side ends the other."""

import socket
import struct

from broker_process import BrokerProcess
from redis_server import free_port
from vectors.proxy import RecordingProxy


def api_versions(correlation: int) -> bytes:
    """An ApiVersions v0 request without its length."""
    return struct.pack(">hhih", 18, 0, correlation, -1)


def ask(connection: socket.socket, request: bytes) -> bytes:
    """The answer to a request, sent in two parts."""
    framed = len(request).to_bytes(4, "big") + request
    connection.sendall(framed[:6])
    connection.sendall(framed[6:])
    with connection.makefile("rb") as answers:
        return answers.read(int.from_bytes(answers.read(4), "big"))


def test_an_exchange_is_passed_on_and_written_down(broker: BrokerProcess) -> None:
    with RecordingProxy(free_port(), broker.port) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=120) as connection:
            first, second = ask(connection, api_versions(7)), ask(connection, api_versions(8))
        exchanges = proxy.take()
    assert [exchange.request for exchange in exchanges] == [api_versions(7), api_versions(8)]
    assert [exchange.response for exchange in exchanges] == [first, second]
    assert first[:4] == (7).to_bytes(4, "big")
    assert proxy.take() == []


def test_a_request_without_an_answer_is_kept(broker: BrokerProcess) -> None:
    unknown = struct.pack(">hhih", 999, 0, 9, -1)  # the broker closes the connection
    with RecordingProxy(free_port(), broker.port) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=120) as connection:
            assert ask(connection, unknown) == b""
        (exchange,) = proxy.take()
    assert (exchange.request, exchange.response) == (unknown, None)
