"""Kafka 0.7's protocol over real sockets and both stores: the exchanges recorded with the original, and its frames."""

import socket
import struct
from random import Random

import pytest

from legacy_broker import LegacyBroker, renamed
from legacy_vectors import EMPTY_0, EMPTY_1, EXCHANGES, GZIP, HELLO, HELLO_0, SET, SNAPPY, Exchange

# -- section 12 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["one by one", "pipelined", "byte by byte"])
def test_the_exchanges_with_the_original(legacy: LegacyBroker, way: str) -> None:
    suffix = {"one by one": b"_1", "pipelined": b"_2", "byte by byte": b"_3"}[way]
    with legacy.connect() as client:
        sent = [renamed(one.sent, suffix) for one in EXCHANGES]
        if way == "pipelined":
            client.socket.sendall(b"".join(sent))
        for one, data in zip(EXCHANGES, sent, strict=True):
            if way == "one by one":
                client.socket.sendall(data)
            elif way == "byte by byte":
                client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for byte in data:
                    client.socket.sendall(bytes([byte]))
            if one.answer:
                answer = client.answer()
                assert struct.pack(">i", len(answer)) + answer == one.answer, one.name


def test_every_message_of_section_12_is_served_as_sent(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    sent = SET + HELLO_0 + EMPTY_0 + EMPTY_1 + GZIP + SNAPPY
    with legacy.connect() as client:
        client.produce(topic, 0, sent)
        assert client.fetch(topic, 0, 0) == sent


def test_a_client_that_half_closes_gets_its_answer(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO)
        client.socket.sendall(EXCHANGES[7].sent)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer() == b"\0\0"
        assert client.socket.recv(10) == b""


# -- section 2 ---------------------------------------------------------------------------------------------------------

FETCH_FRAME = EXCHANGES[7].sent
MALFORMED = {
    "size 0": struct.pack(">i", 0),
    "size negative": struct.pack(">i", -1),
    "size above the limit": struct.pack(">i", 104857601),
    "unknown request id": struct.pack(">ih", 2, 5),
    "negative request id": struct.pack(">ih", 2, -1),
    "body shorter than its fields say": struct.pack(">i", 10) + FETCH_FRAME[4:14],
    "a frame of 1 byte": struct.pack(">i", 1) + b"\0",
    "negative count": struct.pack(">ihh", 4, 2, -1),
    "count larger than the bodies present": struct.pack(">ihh", 4, 3, 32767),
    "messages length larger than the frame": EXCHANGES[0].sent[:16] + b"\x7f\xff\xff\xff" + EXCHANGES[0].sent[20:],
    "a topic that is not UTF-8": FETCH_FRAME[:8] + b"\xff\xff\xff\xff" + FETCH_FRAME[12:],
}


@pytest.mark.parametrize("row", MALFORMED)
def test_the_connection_is_closed_for(legacy: LegacyBroker, row: str) -> None:
    assert legacy.closes(lambda client: client.socket.sendall(MALFORMED[row]))


def test_bytes_behind_a_body_are_ignored(legacy: LegacyBroker) -> None:
    with legacy.connect() as client:
        client.socket.sendall(struct.pack(">i", len(FETCH_FRAME) - 4 + 3) + FETCH_FRAME[4:] + b"abc")
        assert client.answer() == b"\0\0"


@pytest.mark.parametrize("one", EXCHANGES, ids=[one.name for one in EXCHANGES])
def test_every_prefix_of_an_exchange_is_closed_or_waited_for(legacy: LegacyBroker, one: Exchange) -> None:
    body = renamed(one.sent, b"_4")[4:]
    for end in range(1, len(body)):
        with legacy.connect() as client:
            client.socket.sendall(struct.pack(">i", end) + body[:end])
            client.socket.shutdown(socket.SHUT_WR)
            assert client.socket.recv(1 << 16) == b"", end
        with legacy.connect() as client:
            client.socket.sendall(struct.pack(">i", len(body)) + body[:end])
            client.socket.shutdown(socket.SHUT_WR)
            assert client.socket.recv(1 << 16) == b"", end


def test_random_bytes_never_stop_the_broker(legacy: LegacyBroker) -> None:
    random = Random(7)
    for _ in range(200):
        request = random.choice(EXCHANGES).sent
        body = bytearray(renamed(request, b"_5")[4:])
        for _ in range(random.randrange(1, 4)):
            body[random.randrange(len(body))] = random.choice([0, 1, 127, 128, 255])
        with legacy.connect() as client:
            client.socket.sendall(struct.pack(">i", len(body)) + body)
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(1 << 16):
                pass
    with legacy.connect() as client:
        client.socket.sendall(FETCH_FRAME)
        assert client.answer() == b"\0\0"
