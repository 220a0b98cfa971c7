"""A bare loop and a bare relay: what they read in a request, send to Redis, and answer."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.peers.answers import Answers, Topic
from benchmarks.peers.bare_loop import BareLoop
from benchmarks.peers.relay_loop import KEY, WAYS, Answered, Pipeline, RelayLoop
from benchmarks.requests.cases import batch, error_codes, produce_to
from benchmarks.table import LOADS
from korvet_fast._native import encode_commands, parse_replies
from korvet_fast.store.redis.stream.scripts import CLOSE, GUARD
from korvet_fast.types import Buffer
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS, DELETE_TOPICS

SPOKEN = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 5, CREATE_TOPICS: 4, DELETE_TOPICS: 3}  # as the load generator
BATCH = batch(16 << 10)
RECORDS = int.from_bytes(BATCH[57:61], "big")
CREATE: dict[str, Any] = {"timeout_ms": 0, "topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]}


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def write(self, data: Buffer) -> None:
        self.written += data

    def writelines(self, parts: Any) -> None:
        self.written += b"".join(parts)


class Redis(Pipeline):
    """Keeps the commands, and answers when the test says so."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []
        self.waiting: list[tuple[int, Answered]] = []

    def send(self, parts: Sequence[Buffer], replies: int, answered: Answered) -> None:
        self.sent += parse_replies(b"".join(parts))  # commands are arrays, as replies may be
        self.waiting.append((replies, answered))

    def answer(self, reply: bytes = b"") -> None:
        self.waiting.pop(0)[1](reply)


class Client:
    """Requests to a connection, and its answers."""

    def __init__(self, connection: Answers) -> None:
        self._connection = connection
        self._transport = Transport()
        connection.connection_made(self._transport)

    def ask(self, message: Message, values: dict[str, Any]) -> None:
        version = SPOKEN[message]
        known = {field.name for field in message.request_shape.fields}
        head = {"api_key": message.key, "api_version": version, "correlation_id": 7, "client_id": "some client"}
        body = {name: value for name, value in values.items() if name in known}
        for part in message.request.frame(head | body, version):
            self._connection.data_received(bytes(part))

    def receive(self, message: Message) -> dict[str, Any]:
        """The answer that has come; there is one only."""
        size = int.from_bytes(self._transport.written[:4], "big")
        assert len(self._transport.written) == 4 + size
        answer = bytes(self._transport.written[4:])
        self._transport.written.clear()
        values = message.response.decode(answer, SPOKEN[message], 1 << 20)
        assert values["correlation_id"] == 7
        return values

    @property
    def answered(self) -> bool:
        return bool(self._transport.written)


def base_offset(answer: dict[str, Any]) -> int:
    ((row,),) = (topic["partition_responses"] for topic in answer["responses"])
    assert row["error_code"] == 0
    return int(row["base_offset"])


def find_offset(client: Client, time: int) -> tuple[int, int]:
    """The error code and the offset at a time, -1 for the end."""
    row = {"name": "t", "partitions": [{"partition_index": 0, "timestamp": time}]}
    client.ask(LIST_OFFSETS, {"replica_id": -1, "topics": [row]})
    ((found,),) = (topic["partitions"] for topic in client.receive(LIST_OFFSETS)["topics"])
    return found["error_code"], found["offset"]


def test_a_bare_loop_answers_at_once_and_counts() -> None:
    client = Client(BareLoop(Topic()))
    for number in range(2):
        client.ask(PRODUCE, produce_to("t", [BATCH]))
        assert base_offset(client.receive(PRODUCE)) == number * RECORDS
    assert find_offset(client, -1) == (0, 2 * RECORDS)
    assert find_offset(client, -2) == (0, 0)


def test_a_topic_that_is_deleted_is_gone_and_begins_anew() -> None:
    client = Client(BareLoop(Topic()))
    client.ask(PRODUCE, produce_to("t", [BATCH]))
    client.receive(PRODUCE)
    client.ask(DELETE_TOPICS, {"timeout_ms": 0, "topic_names": ["t"]})
    assert not any(error_codes(client.receive(DELETE_TOPICS)))
    assert find_offset(client, -1)[0] == 3
    client.ask(CREATE_TOPICS, CREATE)
    assert not any(error_codes(client.receive(CREATE_TOPICS)))
    assert find_offset(client, -1) == (0, 0)


@pytest.mark.parametrize(("way", "commands"), [("a", 1), ("c", RECORDS)])
def test_a_relay_answers_when_redis_has(way: str, commands: int) -> None:
    redis = Redis()
    client = Client(RelayLoop(Topic(), WAYS[way](redis)))
    for number in range(2):
        client.ask(PRODUCE, produce_to("t", [BATCH]))
        assert not client.answered
        assert [replies for replies, _ in redis.waiting] == [commands]
        redis.answer()
        assert base_offset(client.receive(PRODUCE)) == number * RECORDS
    assert {tuple(command[:2]) for command in redis.sent} == {(b"XADD", KEY.encode())}
    assert len(redis.sent) == 2 * commands


async def test_batches_of_a_turn_are_one_transaction() -> None:
    redis = Redis()
    way = WAYS["bpv"](redis)
    topic = Topic()
    clients = [Client(RelayLoop(topic, way)) for _ in range(2)]
    for client in clients:
        client.ask(PRODUCE, produce_to("t", [BATCH]))
    assert not redis.sent
    await asyncio.sleep(0)
    multi, guard, first, second, close, execute = redis.sent
    assert (multi, execute) == ([b"MULTI"], [b"EXEC"])
    assert (guard[1], close[1]) == (GUARD.encode(), CLOSE.encode())
    assert guard[-1] == b"0"
    assert close[close.index(b"end") + 1] == b"%d" % (2 * RECORDS)
    assert [command[2] for command in (first, second)] == [b"0-1", b"%d-1" % RECORDS]
    assert second[4][:8] == RECORDS.to_bytes(8, "big")
    redis.answer()
    assert [base_offset(client.receive(PRODUCE)) for client in clients] == [0, RECORDS]


@pytest.mark.parametrize("way", WAYS)
async def test_a_fetch_is_answered_with_what_xrange_gives(way: str) -> None:
    redis = Redis()
    client = Client(RelayLoop(Topic(), WAYS[way](redis)))
    for _ in range(2):
        client.ask(PRODUCE, produce_to("t", [BATCH]))
    await asyncio.sleep(0)
    entries = [command[2:] for command in redis.sent if command[0] == b"XADD"]
    half = len(entries) // 2
    partition = {"partition": 0, "fetch_offset": RECORDS, "partition_max_bytes": 1 << 20}
    client.ask(FETCH, {"max_wait_ms": 0, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [partition]}]})
    assert redis.sent[-1][:3] == [b"XRANGE", KEY.encode(), entries[half][0]]
    rows = b"".join(b"*2\r\n$%d\r\n%b\r\n" % (len(at), at) + encode_commands([rest]) for at, *rest in entries[half:])
    redis.waiting[-1][1](b"*%d\r\n%b" % (half, rows))
    ((found,),) = (topic["partitions"] for topic in client.receive(FETCH)["responses"])
    assert found["records"][:8] == RECORDS.to_bytes(8, "big")
    assert found["records"][61:] == BATCH[61:]


def test_each_relay_stands_beside_the_layout_that_it_is_like() -> None:
    judged = {
        (load.arguments, ratio.of, ratio.to): str(ratio.target)
        for load in LOADS
        for ratio in load.figures[0].ratios
        if ratio.to.startswith("relay") and ratio.target and load.mode == "produce"
    }
    assert sorted(judged.values()) == ["≤ 1.25 x"] * 2 + ["≥ 0.7 x"] * 2 + ["≥ 0.8 x"] + ["≥ 0.85 x"] * 4 + ["≥ 0.88 x"]
    assert all(set(figure_peers(load)) <= set(load.peers) for load in LOADS)


def figure_peers(load: Any) -> list[str]:
    """The relays that a load's ratios name: without them a ratio would be left out silently."""
    return [ratio.to for figure in load.figures for ratio in figure.ratios if ratio.to.startswith("relay")]
