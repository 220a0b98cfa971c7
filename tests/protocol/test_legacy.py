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


MESSAGES = {
    "hello of magic 0": HELLO_0,
    "empty of magic 0": EMPTY_0,
    "empty of magic 1": EMPTY_1,
    "gzip": GZIP,
    "snappy": SNAPPY,
}


@pytest.mark.parametrize("name", MESSAGES)
def test_every_prefix_of_a_message_of_section_12(legacy: LegacyBroker, name: str) -> None:
    message, torn, behind = MESSAGES[name], legacy.topic(), legacy.topic()
    for end in range(1, len(message)):
        assert legacy.closes(lambda client, end=end: client.produce(torn, 0, message[:end])), end  # type: ignore[misc]
        with legacy.connect() as client:
            client.produce(behind, 0, HELLO + message[:end])
            assert client.offsets(behind, 0) == [end * len(HELLO)], end
    with legacy.connect() as client:
        assert client.offsets(torn, 0) == [0]
        read = b"".join(client.fetch(behind, 0, edge) for edge in reversed(client.offsets(behind, 0, most=100)))
        assert read == HELLO * (len(message) - 1)


def test_a_client_that_half_closes_gets_its_answer(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO)
        client.socket.sendall(EXCHANGES[7].sent)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer() == b"\0\0"
        assert client.socket.recv(10) == b""


def test_what_a_client_sends_right_before_it_half_closes_is_all_done_and_answered(legacy: LegacyBroker) -> None:
    requests = b"".join(renamed(one.sent, b"_6") for one in EXCHANGES)
    with legacy.connect() as client:
        client.socket.sendall(requests)
        client.socket.shutdown(socket.SHUT_WR)
        answers = b""
        while more := client.socket.recv(1 << 16):
            answers += more
    assert answers == b"".join(one.answer for one in EXCHANGES)
    with legacy.connect() as client:
        client.socket.sendall(renamed(EXCHANGES[0].sent, b"_7"))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.socket.recv(1) == b"", "a produce has no answer"
    with legacy.connect() as client:
        client.socket.sendall(renamed(EXCHANGES[1].sent, b"_7"))
        assert client.answer() == EXCHANGES[1].answer[4:]


# -- section 2 ---------------------------------------------------------------------------------------------------------

FETCH_FRAME = EXCHANGES[7].sent
MALFORMED = {
    "size 0": struct.pack(">i", 0),
    "size negative": struct.pack(">i", -1),
    "size above the limit": struct.pack(">i", 104857601),
    "size 2147483647": struct.pack(">i", 2**31 - 1),
    "size -2147483648": struct.pack(">i", -(2**31)),
    "unknown request id": struct.pack(">ih", 2, 5),
    "negative request id": struct.pack(">ih", 2, -1),
    "body shorter than its fields say": struct.pack(">i", 10) + FETCH_FRAME[4:14],
    "a frame of 1 byte": struct.pack(">i", 1) + b"\0",
    "negative count, of fetches": struct.pack(">ihh", 4, 2, -1),
    "negative count, of produces": struct.pack(">ihh", 4, 3, -32768),
    "count larger than the bodies present, of fetches": struct.pack(">ihh", 4, 2, 32767),
    "count larger than the bodies present, of produces": struct.pack(">ihh", 4, 3, 32767),
    "count one larger than the bodies present": EXCHANGES[8].sent[:6] + struct.pack(">h", 4) + EXCHANGES[8].sent[8:],
    **{
        f"messages length {length}, of {one.name}": one.sent[:at] + struct.pack(">i", length) + one.sent[at + 4 :]
        for one, at in ((EXCHANGES[0], 16), (EXCHANGES[13], 18))
        for length in (2**31 - 1, 44, -1, -(2**31))
    },
    **{
        f"a name's length {length}": FETCH_FRAME[:6] + struct.pack(">h", length) + FETCH_FRAME[8:]
        for length in (2**15 - 1, -1, -(2**15))
    },
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
