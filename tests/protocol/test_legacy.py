"""Kafka 0.7's protocol over real sockets and both stores: the exchanges recorded with the original, and its tables."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from random import Random

import pytest

from batches import read_rows
from broker_process import BrokerProcess
from kafka_server import DESCRIBE_CONFIGS, METADATA, RawClient, error_of, make_batch
from korvet_reference import compression
from korvet_reference.header import new_batch
from korvet_reference.legacy_client import EARLIEST, LATEST, FetchError, LegacyClient, encode_message, read_messages
from korvet_reference.records import Record, write_record
from legacy_vectors import EMPTY_0, EMPTY_1, EXCHANGES, GZIP, HELLO, HELLO_0, SET, SNAPPY, WORLD, Exchange
from raw_connection import connect
from redis_server import RedisServer, find_program, free_port

SETTINGS = (
    "controller.mutation.rate=1000000",
    "num.partitions=2",
    "topic.partition.count.map=wide:5",
    "message.max.bytes=1000",
    "log.segment.bytes=1024",
)
PATIENCE = 60.0  # seconds for anything at all


class LegacyBroker:
    """A broker process with both doors. `topic()`: a name that no other test uses."""

    def __init__(self, process: BrokerProcess, port: int) -> None:
        self.process = process
        self.port = port
        self._number = 0

    def topic(self) -> str:
        self._number += 1
        return f"t{self._number}"

    def connect(self) -> LegacyClient:
        return LegacyClient("127.0.0.1", self.port, PATIENCE)

    def kafka(self, scenario: Callable[[RawClient], Awaitable[None]]) -> None:
        """Run `scenario` with a client of Kafka's door."""

        async def run() -> None:
            async with asyncio.timeout(PATIENCE), connect(self.process.port) as client:
                await scenario(client)

        asyncio.run(run())

    def closes(self, request: Callable[[LegacyClient], object]) -> bool:
        """Whether the broker closes the connection on this, without a byte of an answer."""
        with self.connect() as client:
            request(client)
            client.socket.sendall(EXCHANGES[7].sent)  # a FETCH: answered if the connection is still open
            try:
                return client.socket.recv(1 << 16) == b""
            except ConnectionResetError:
                return True


@pytest.fixture(scope="module", params=["files", "redis"])
def legacy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LegacyBroker]:
    """One broker for all tests of the module; each test uses its own topics."""
    directory, port = tmp_path_factory.mktemp("legacy"), free_port()
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    if request.param == "files":
        with BrokerProcess(directory / "data", *SETTINGS, arguments=arguments) as process:
            yield LegacyBroker(process, port)
    else:
        with (
            RedisServer(find_program("redis-server"), directory / "redis") as server,
            BrokerProcess(directory / "unused", *SETTINGS, store=server.url, arguments=arguments) as process,
        ):
            yield LegacyBroker(process, port)


# -- section 12 --------------------------------------------------------------------------------------------------------


def renamed(data: bytes, suffix: bytes) -> bytes:
    """The same request of topics with other names of the same length, so that the broker does not know them yet."""
    for name in (b"testgz", b"test2", b"test", b"nope"):
        marked = struct.pack(">h", len(name)) + name
        data = data.replace(marked, marked[:-2] + suffix)
    return data


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


# -- 6.1 produce -------------------------------------------------------------------------------------------------------

DAMAGED = HELLO[:-1] + b"X"
FUTURE = bytes.fromhex("0000000b02003610a68668656c6c6f")
CLOSING = {
    "one bad CRC anywhere": HELLO + DAMAGED,
    "a bad CRC in an inner message": encode_message(compression.compress(1, HELLO + DAMAGED), 1),
    "a bad CRC in a nested message": encode_message(
        compression.compress(1, encode_message(compression.compress(1, DAMAGED), 1)), 1
    ),
    "magic other than 0 or 1": HELLO + FUTURE,
    "codec 3": encode_message(b"text", 3),
    "gzip flag on non-gzip data": encode_message(b"text", 1),
    "LENGTH negative": HELLO + struct.pack(">i", -1),
    "LENGTH smaller than its header": struct.pack(">i", 5) + b"\1\0\0\0\0",
    "the first message is already cut short": HELLO[:-1],
}


@pytest.mark.parametrize("row", CLOSING)
def test_produce_closes_and_stores_nothing_for(legacy: LegacyBroker, row: str) -> None:
    topic = legacy.topic()
    assert legacy.closes(lambda client: client.produce(topic, 0, CLOSING[row]))
    with legacy.connect() as client:
        assert client.offsets(topic, 0) == [0]
        client.produce(topic, 0, HELLO)  # and the topic was created all the same
        assert client.fetch(topic, 0, 0) == HELLO


@pytest.mark.parametrize("partition", [-2, 2, 2**31 - 1])
def test_produce_closes_for_a_partition_out_of_range(legacy: LegacyBroker, partition: int) -> None:
    topic = legacy.topic()
    assert legacy.closes(lambda client: client.produce(topic, partition, HELLO))


def test_a_topic_has_the_partitions_that_the_count_map_gives_it(legacy: LegacyBroker) -> None:
    assert legacy.closes(lambda client: client.produce("wide", 5, HELLO))
    with legacy.connect() as client:
        client.produce("wide", 4, HELLO)
        assert client.fetch("wide", 4, 0) == HELLO


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a\0b", "x" * 256])
def test_produce_closes_for_an_illegal_topic(legacy: LegacyBroker, topic: str) -> None:
    assert legacy.closes(lambda client: client.produce(topic, 0, HELLO))


def test_produce_to_partition_minus_1_goes_to_a_random_one(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        for _ in range(64):
            client.produce(topic, -1, HELLO)
        ends = [client.offsets(topic, index)[0] for index in range(2)]
    assert sum(ends) == 64 * len(HELLO)
    assert min(ends) > 0


@pytest.mark.parametrize("left_over", [1, 2, 3, 4, len(WORLD) - 1])
def test_produce_stores_the_whole_messages_before_a_partial_one(legacy: LegacyBroker, left_over: int) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO + WORLD[:left_over])
        assert client.fetch(topic, 0, 0) == HELLO


def test_produce_drops_a_set_with_a_large_message_and_stays_open(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    exact = encode_message(bytes(1000))
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO + encode_message(bytes(1001)))
        assert client.fetch(topic, 0, 0) == b""
        client.produce(topic, 0, exact)
        assert client.fetch(topic, 0, 0) == exact
        inner = encode_message(compression.compress(1, encode_message(bytes(2000))), 1)
        client.produce(topic, 0, inner)  # inner sizes do not count
        assert client.offsets(topic, 0) == [len(exact) + len(inner)]


def test_produce_of_an_empty_set_creates_the_topic(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, b"")
        assert client.offsets(topic, 0) == [0]

    async def scenario(kafka: RawClient) -> None:
        answer = await kafka.ask(METADATA, 9, topics=[{"name": topic}])
        assert len(answer["topics"][0]["partitions"]) == 2

    legacy.kafka(scenario)


# -- 6.2 multiproduce --------------------------------------------------------------------------------------------------


def test_multiproduce_skips_what_is_too_large_and_ends_at_what_is_wrong(legacy: LegacyBroker) -> None:
    first, large, bad, late = (legacy.topic() for _ in range(4))
    too_large = encode_message(bytes(1001))
    sets = [(first, 0, HELLO), (large, 0, too_large), (large, 1, WORLD), (bad, 0, DAMAGED), (late, 0, HELLO)]
    assert legacy.closes(lambda client: client.multi_produce(sets))
    with legacy.connect() as client:
        assert client.fetch(first, 0, 0) == HELLO
        assert (client.fetch(large, 0, 0), client.fetch(large, 1, 0)) == (b"", WORLD)
        assert (client.fetch(bad, 0, 0), client.fetch(late, 0, 0)) == (b"", b"")


# -- 6.3, 6.4 fetch ----------------------------------------------------------------------------------------------------


def refusal(call: Callable[[], object]) -> int:
    with pytest.raises(FetchError) as caught:
        call()
    return caught.value.code


def test_fetch_row_by_row(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        assert client.fetch(topic, 0, 999) == b"", "unknown topic"
        assert refusal(lambda: client.fetch(topic, 2, 0)) == 3, "partition of an unknown topic"
        client.produce(topic, 0, SET)
        assert client.fetch(topic, 1, 999) == b"", "a partition in range with no log yet"
        assert refusal(lambda: client.fetch(topic, -1, 0)) == 3
        assert refusal(lambda: client.fetch(topic, 2, 0)) == 3
        assert refusal(lambda: client.fetch("a/b", 0, 0)) == -1
        assert client.fetch(topic, 0, 30) == b"", "the end"
        assert refusal(lambda: client.fetch(topic, 0, 31)) == 1
        assert refusal(lambda: client.fetch(topic, 0, -1)) == 1
        for offset in range(30):
            for size in (0, 1, 4, 5, 29, 1000):
                assert client.fetch(topic, 0, offset, size) == SET[offset : offset + size]
        assert refusal(lambda: client.fetch(topic, 0, 0, -1)) == 4
        got = client.multi_fetch([(topic, 0, 15, 100), (topic, 0, 31, 100), ("a/b", 0, 0, 1), (topic, 7, 0, 1)])
        assert got[0] == WORLD
        assert [error.code for error in got[1:] if isinstance(error, FetchError)] == [1, -1, 3]
        assert client.multi_fetch([]) == []


# -- 6.5 offsets, and the edges of segments ----------------------------------------------------------------------------


def test_fetch_ends_at_a_segments_end_and_offsets_name_them(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    message = encode_message(bytes(190))  # 200 bytes: a segment is full when it is larger than 1024
    with legacy.connect() as client:
        for _ in range(14):
            client.produce(topic, 0, message)
        assert [len(client.fetch(topic, 0, at)) for at in (0, 1200, 2400, 1000)] == [1200, 1200, 400, 200]
        assert client.offsets(topic, 0, LATEST, 1) == [2800]
        assert client.offsets(topic, 0, LATEST, 2) == [2800, 2400]
        assert client.offsets(topic, 0, LATEST, 10) == [2800, 2400, 1200, 0]
        assert client.offsets(topic, 0, EARLIEST, 10) == [0]
        assert client.offsets(topic, 0, 1 << 60, 10) == [2800, 2400, 1200, 0], "any future time"
        for time in (0, -3, -1000):
            assert client.offsets(topic, 0, time, 10) == []
        assert client.offsets(topic, 0, LATEST, 0) == []


@pytest.mark.parametrize(("partition", "most"), [(0, -1), (2, 1), (-1, 1)])
def test_offsets_closes_for(legacy: LegacyBroker, partition: int, most: int) -> None:
    topic = legacy.topic()

    def ask(client: LegacyClient) -> None:
        name = topic.encode()
        body = struct.pack(">h", len(name)) + name + struct.pack(">iqi", partition, LATEST, most)
        client.socket.sendall(struct.pack(">ih", len(body) + 2, 4) + body)

    assert legacy.closes(ask)


def test_offsets_of_an_unknown_topic(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        for time in (LATEST, EARLIEST):
            assert (client.offsets(topic, 0, time, 0), client.offsets(topic, 0, time, 5)) == ([0], [0])
        assert client.offsets(topic, 0, 1 << 60, 5) == []


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


def test_a_bomb_of_nested_gzip_is_bounded_and_closed(legacy: LegacyBroker) -> None:
    bomb = encode_message(bytes(256 << 20))
    for _ in range(3):
        bomb = encode_message(compression.compress(1, bomb), 1)
    assert len(bomb) < 1000
    assert legacy.closes(lambda client: client.produce(legacy.topic(), 0, bomb))


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


def test_settings_that_such_a_topic_cannot_have(legacy: LegacyBroker) -> None:
    topic = legacy.topic()

    async def scenario(kafka: RawClient) -> None:
        row = await kafka.create(topic, storage_layout="legacy", compression_type="gzip")
        assert error_of(row) == "INVALID_CONFIG"
        assert error_of(await kafka.create(topic, storage_layout="legacy", compression_type="producer")) == ""
        resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
        answer = await kafka.ask(DESCRIBE_CONFIGS, 4, resources=[resource])
        told = {row["name"]: row["value"] for row in answer["results"][0]["configs"]}
        assert (told["storage.layout"], told["message.timestamp.type"]) == ("legacy", "LogAppendTime")

    legacy.kafka(scenario)


# -- both doors --------------------------------------------------------------------------------------------------------


def test_what_0_7_wrote_is_read_by_clients_of_today(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client:
        client.produce(topic, 0, SET + GZIP + SNAPPY + HELLO_0)
        end = client.offsets(topic, 0)[0]

    async def scenario(kafka: RawClient) -> None:
        got = await kafka.fetch(topic, 0)
        assert error_of(got) == ""
        rows = read_rows(got["records"])
        assert rows == [
            (0, b"hello"),
            (15, b"world"),
            (30, b"hello"),
            (31, b"world"),
            (87, b"hello"),
            (88, b"world"),
            (149, b"hello"),
        ]
        assert got["high_watermark"] == end == 163

    legacy.kafka(scenario)


def test_what_clients_of_today_write_is_read_by_0_7(legacy: LegacyBroker) -> None:
    topic = legacy.topic()

    async def scenario(kafka: RawClient) -> None:
        assert error_of(await kafka.create(topic, 2, storage_layout="legacy")) == ""
        row = await kafka.produce(topic, make_batch(b"hello", b"world"))
        assert (error_of(row), row["base_offset"]) == ("", 0)
        keyed = new_batch(write_record(Record(0, 0, b"k", b"hello", [])), 0, [0], 0, 0)
        row = await kafka.produce(topic, keyed)
        assert error_of(row) == "INVALID_RECORD"

    legacy.kafka(scenario)
    with legacy.connect() as client:
        data = client.fetch(topic, 0, 0)
        assert data == SET
        assert [message.payload for message in read_messages(data, 0)] == [b"hello", b"world"]


def test_topics_of_other_formats_are_not_visible(legacy: LegacyBroker) -> None:
    topic = legacy.topic()

    async def scenario(kafka: RawClient) -> None:
        await kafka.create(topic, 2)
        assert error_of(await kafka.produce(topic, make_batch(b"hello"))) == ""

    legacy.kafka(scenario)
    with legacy.connect() as client:
        assert refusal(lambda: client.fetch(topic, 0, 0)) == 3
    assert legacy.closes(lambda client: client.produce(topic, 0, HELLO))


def test_a_request_that_names_many_positions_is_answered_within_limits(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    with legacy.connect() as client, legacy.connect() as other:
        messages = encode_message(bytes(900)) * 1000
        client.produce(topic, 0, messages)
        assert client.offsets(topic, 0) == [len(messages)]
        asked = [(topic, 0, 0, 1 << 30)] * 2000  # 1.8 GB, had each what it asks for
        got = client.multi_fetch(asked)
        assert other.fetch(topic, 0, 0, 910) == messages[:910]
        sizes = [len(data) for data in got if not isinstance(data, FetchError)]
        assert len(sizes) == len(asked)
        assert sizes[0] == len(messages)
        assert sum(sizes) <= 32 << 20


def test_no_segment_divides_a_set(legacy: LegacyBroker) -> None:
    topic = legacy.topic()
    messages = encode_message(bytes(900)) * 200  # several batches
    with legacy.connect() as client:
        client.produce(topic, 0, HELLO)
        client.produce(topic, 0, messages)
        client.produce(topic, 0, WORLD)
        end = len(HELLO) + len(messages)
        assert client.offsets(topic, 0, LATEST, 10) == [end + len(WORLD), end, 0]
        assert client.fetch(topic, 0, 0) == HELLO + messages
