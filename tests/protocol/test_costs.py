"""What one client asks for never stops another: the longest wait of a second, well-behaved one is measured meanwhile.

A broker process and sockets. Machines have other work too: of a wait no more counts than the processor time that the
broker had meanwhile, and each attack is tried up to three times; what counts is the best of them.
"""

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

import batches
from broker_process import BrokerProcess
from kafka_server import (
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DESCRIBE_CONFIGS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    RawClient,
    frame,
)
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.shapes.catalog import CATALOG
from korvet_reference.checksum import crc32c
from raw_connection import connect

BOUND = 0.1  # seconds that the second client may wait
ATTEMPTS = 3
PARTITIONS = 20_000
INVALID = CODES["INVALID_REQUEST"]


class SecondClient(threading.Thread):
    """Asks for the versions every few milliseconds, and remembers the longest wait for an answer."""

    def __init__(self, broker: BrokerProcess) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._socket = socket.create_connection(("127.0.0.1", broker.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._over = threading.Event()
        self.longest = 0.0
        self.asking = threading.Event()

    def run(self) -> None:
        ask = frame(CATALOG[18].request.encode({"api_key": 18, "api_version": 0, "correlation_id": 1}, 0))
        while not self._over.wait(0.003):
            began, busy = time.monotonic(), read_busy(self._broker)
            self._socket.sendall(ask)
            read_answer(self._socket)
            self.longest = max(self.longest, min(time.monotonic() - began, read_busy(self._broker) - busy))
            self.asking.set()

    def finish(self) -> float:
        self._over.set()
        self.join()
        self._socket.close()
        return self.longest


def read_busy(broker: BrokerProcess) -> float:
    """Seconds that the broker's threads were running, all together."""
    threads = Path(f"/proc/{broker.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def read_answer(source: socket.socket) -> bytes:
    def read(size: int) -> bytearray:
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            got = source.recv_into(rest)
            assert got, "the broker closed the connection"
            rest = rest[got:]
        return data

    return bytes(read(int.from_bytes(read(4), "big")))


def attack(broker: BrokerProcess, key: int, version: int, **values: Any) -> tuple[dict[str, Any], float]:
    """The answer to one request, and the longest wait of another client while it was at work."""
    header = {"api_key": key, "api_version": version, "correlation_id": 7, "client_id": "attacker"}
    request = frame(CATALOG[key].request.encode(header | values, version))
    waits = []
    for _ in range(ATTEMPTS):
        second = SecondClient(broker)
        second.start()
        second.asking.wait()
        with socket.create_connection(("127.0.0.1", broker.port)) as first:
            first.sendall(request)
            answer = read_answer(first)
        waits.append(second.finish())
        print(f"{CATALOG[key].name}: {len(request)} B asked, {len(answer)} B answered, longest wait {waits[-1]:.3f} s")
        if waits[-1] < BOUND:
            break
    return CATALOG[key].response.decode(answer, version, 1_000_000), min(waits)


def set_up(port: int, work: Callable[[RawClient], Any]) -> Any:
    async def run() -> Any:
        async with connect(port) as client:
            return await work(client)

    return asyncio.run(run())


def peak_memory(broker: BrokerProcess) -> int:
    """Bytes of memory that the broker had at most."""
    with Path(f"/proc/{broker.pid}/status").open() as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def forget_peak(broker: BrokerProcess) -> int:
    """Begin anew with `peak_memory`; what it has now."""
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")
    return peak_memory(broker)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a topic `wide` of 20,000 partitions."""
    with BrokerProcess(tmp_path_factory.mktemp("wide") / "data", f"max.partitions={PARTITIONS + 2000}") as running:
        row = set_up(running.port, lambda client: client.create("wide", PARTITIONS))
        assert row["error_code"] == 0
        yield running


def _new_topic(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}


@pytest.mark.parametrize("names", [["t"] * 40, [f"t{number}" for number in range(40)], ["t"]])
def test_finding_2_1_topics_that_are_only_checked_stop_nobody(
    start_broker: Callable[..., BrokerProcess], names: list[str]
) -> None:
    started = start_broker()
    topics = [_new_topic(name) for name in names]
    answer, wait = attack(started, CREATE_TOPICS, 7, topics=topics, timeout_ms=1000, validate_only=True)
    expected = 0 if len(set(names)) == len(names) else INVALID
    assert [row["error_code"] for row in answer["topics"]] == [expected] * len(names)
    assert all(row["num_partitions"] == PARTITIONS for row in answer["topics"] if not expected)
    assert wait < BOUND


@pytest.mark.parametrize("times", [40, 400])
def test_finding_2_2_a_topic_named_often_is_described_once(wide: BrokerProcess, times: int) -> None:
    before = forget_peak(wide)
    answer, wait = attack(wide, METADATA, 12, topics=[{"name": "wide"}] * times)
    assert [len(row["partitions"]) for row in answer["topics"]] == [PARTITIONS]
    assert wait < BOUND
    assert peak_memory(wide) - before < 32 << 20


def test_finding_2_2_all_topics_are_described_in_slices(wide: BrokerProcess) -> None:
    answer, wait = attack(wide, METADATA, 12, topics=None)
    assert sum(len(row["partitions"]) for row in answer["topics"]) >= PARTITIONS
    assert wait < BOUND


def test_finding_2_3_a_resource_named_often_is_described_once(broker: BrokerProcess) -> None:
    before = forget_peak(broker)
    asked = [{"resource_type": 4, "resource_name": "", "configuration_keys": None}] * 5000
    answer, wait = attack(broker, DESCRIBE_CONFIGS, 4, resources=asked, include_documentation=True)
    assert len(answer["results"]) == 1
    assert len(answer["results"][0]["configs"]) > 20
    assert wait < BOUND
    assert peak_memory(broker) - before < 32 << 20


def test_finding_2_3_many_resources_are_described_in_slices(broker: BrokerProcess) -> None:
    set_up(broker.port, lambda client: client.create("described"))
    before = forget_peak(broker)
    asked = [{"resource_type": 2, "resource_name": f"missing-{number}"} for number in range(20_000)]
    asked.append({"resource_type": 2, "resource_name": "described"})
    answer, wait = attack(broker, DESCRIBE_CONFIGS, 4, resources=asked)
    assert len(answer["results"]) == 20_001
    assert wait < BOUND
    assert peak_memory(broker) - before < 64 << 20


def _write_varint(number: int) -> bytes:
    """Zigzag, seven bits at a time, as records have it."""
    number <<= 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _unpack_to_much() -> bytes:
    """Some 100 bytes, compressed, that unpack to one record of 1 MiB: 524,000 headers without name and value."""
    headers = 524_000
    record = b"\0\0\0\1\1" + _write_varint(headers) + b"\0\1" * headers
    now = int(time.time() * 1000)
    packed = zstandard.compress(_write_varint(len(record)) + record)
    behind = struct.pack(">hiqqqhii", 4, 0, now, now, -1, -1, -1, 1) + packed
    ahead = struct.pack(">ibI", -1, 2, crc32c(behind))
    return bytes(8) + struct.pack(">i", len(ahead) + len(behind)) + ahead + behind


def test_finding_2_4_small_batches_that_unpack_to_much_stop_nobody(wide: BrokerProcess) -> None:
    rows = [{"index": index, "records": _unpack_to_much()} for index in range(15_000, 17_000)]
    topics = [{"name": "wide", "partition_data": rows}]
    answer, wait = attack(wide, PRODUCE, 9, acks=1, timeout_ms=30_000, topic_data=topics)
    codes = {row["error_code"] for row in answer["responses"][0]["partition_responses"]}
    assert codes <= {0, CODES["INVALID_RECORD"]}
    assert wait < BOUND


def test_finding_2_4_what_comes_after_them_keeps_its_turn(broker: BrokerProcess) -> None:
    async def work(client: RawClient) -> None:
        await client.create("turns", 3)
        heavy = batches.make_batch([b"z" * (1 << 20)], compression=4)
        for _ in range(5):
            client.send_produce("turns", heavy)
            client.send_produce("turns", batches.make_batch([b"light"]))
        offsets = []
        for _ in range(10):
            row = (await client.reply())["responses"][0]["partition_responses"][0]
            assert row["error_code"] == 0
            offsets.append(row["base_offset"])
        assert offsets == list(range(10))

    set_up(broker.port, work)


def _gzip_of_many() -> bytes:
    """A batch of some 600 KB that holds 20,000 records of 1,000 bytes, the latest of them last."""
    chance = random.Random(5)
    values = [chance.randbytes(20).hex().encode() * 25 for _ in range(20_000)]
    now = int(time.time() * 1000)
    return bytes(batches.make_batch(values, times=[now + number for number in range(len(values))], compression=1))


def test_finding_2_5_searching_for_a_time_stops_nobody(wide: BrokerProcess) -> None:
    batch = _gzip_of_many()
    late = int(time.time() * 1000) + 15_000

    async def work(client: RawClient) -> None:
        for index in range(100, 200):
            row = await client.produce("wide", batch, index=index, acks=1)
            assert row["error_code"] == 0, row

    set_up(wide.port, work)
    rows = [{"partition_index": index, "current_leader_epoch": -1, "timestamp": late} for index in range(100, 200)]
    answer, wait = attack(wide, LIST_OFFSETS, 7, topics=[{"name": "wide", "partitions": rows}])
    found = answer["topics"][0]["partitions"]
    assert [row["error_code"] for row in found] == [0] * 100
    assert all(row["timestamp"] >= late for row in found)
    assert wait < BOUND


def test_finding_2_5_a_partition_named_often_is_refused(wide: BrokerProcess) -> None:
    rows = [{"partition_index": 7, "current_leader_epoch": -1, "timestamp": 5}] * 2000
    answer, wait = attack(wide, LIST_OFFSETS, 7, topics=[{"name": "wide", "partitions": rows}])
    assert {row["error_code"] for row in answer["topics"][0]["partitions"]} == {INVALID}
    assert wait < BOUND


def _fetch(rows: list[dict[str, Any]], max_bytes: int) -> dict[str, Any]:
    defaults = {"current_leader_epoch": -1, "fetch_offset": 0}
    topics = [{"topic": "wide", "partitions": [defaults | row for row in rows]}]
    return {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": max_bytes, "topics": topics}


def _fill(port: int, indexes: range, size: int) -> None:
    async def work(client: RawClient) -> None:
        batch = bytes(batches.make_batch([b"f" * size], times=[int(time.time() * 1000)]))
        for start in indexes[::100]:
            rows = [{"index": index, "records": batch} for index in range(start, start + 100)]
            topics = [{"name": "wide", "partition_data": rows}]
            answer = await client.ask(PRODUCE, 9, acks=1, timeout_ms=30_000, topic_data=topics)
            assert {row["error_code"] for row in answer["responses"][0]["partition_responses"]} == {0}

    set_up(port, work)


def test_finding_2_6_one_batch_at_most_is_more_than_was_asked_for(wide: BrokerProcess) -> None:
    _fill(wide.port, range(2000, 12_000), 8000)
    before = forget_peak(wide)
    rows = [{"partition": 2000, "partition_max_bytes": 0}] * 10_000
    answer, wait = attack(wide, FETCH, 12, **_fetch(rows, 1))
    assert {row["error_code"] for row in answer["responses"][0]["partitions"]} == {INVALID}
    assert wait < BOUND
    for limit, most in ((0, 1 << 25), (1, 1), (1 << 20, 1), (1, 1 << 25)):
        rows = [{"partition": index, "partition_max_bytes": limit} for index in range(2000, 12_000)]
        answer, wait = attack(wide, FETCH, 12, **_fetch(rows, most))
        sizes = [len(row["records"] or b"") for row in answer["responses"][0]["partitions"]]
        assert sizes[0] > 8000
        assert not any(sizes[1:])
        assert wait < BOUND
    assert peak_memory(wide) - before < 80 << 20


def test_finding_2_7_a_slow_pattern_stops_nobody(start_broker: Callable[..., BrokerProcess]) -> None:
    started = start_broker()

    async def work(client: RawClient) -> None:
        rows = [
            {"name": f"{number:03}".rjust(249, "n"), "num_partitions": 1, "replication_factor": 1}
            for number in range(500)
        ]
        answer = await client.ask(CREATE_TOPICS, 7, topics=rows, timeout_ms=1000)
        assert {row["error_code"] for row in answer["topics"]} == {0}

    set_up(started.port, work)
    heartbeat = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "topic_partitions": [],
    }
    answer, wait = attack(started, CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat, subscribed_topic_regex="(?:.?){3000}z")
    assert answer["error_code"] in (0, CODES["INVALID_REGULAR_EXPRESSION"])
    assert wait < BOUND
    answer, wait = attack(started, CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat, subscribed_topic_regex="n+00[0-4]")
    assert (answer["error_code"], len(answer["assignment"]["topic_partitions"])) == (0, 5)


@pytest.mark.parametrize(
    ("key", "version", "values"),
    [
        (FETCH, 12, _fetch([{"partition": index, "partition_max_bytes": 1000} for index in range(PARTITIONS)], 1000)),
        (METADATA, 12, {"topics": [{"name": f"missing-{number}"} for number in range(PARTITIONS)]}),
    ],
)
def test_honest_requests_that_name_everything_are_answered_in_slices(
    wide: BrokerProcess, key: int, version: int, values: dict[str, Any]
) -> None:
    answer, wait = attack(wide, key, version, **values)
    rows = answer["responses"][0]["partitions"] if key == FETCH else answer["topics"]
    assert len(rows) == PARTITIONS
    assert wait < BOUND


MANY = 19_000  # partitions, as one request may name


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_to_many_partitions_stops_nobody(wide: BrokerProcess, acks: int) -> None:
    batch = batches.make_batch([b"x"])
    rows = [{"index": index, "records": batch} for index in range(MANY)]
    topics = [{"name": "wide", "partition_data": rows}]
    answer, wait = attack(wide, PRODUCE, 9, acks=acks, timeout_ms=60_000, topic_data=topics)
    (topic,) = answer["responses"]
    assert [row["index"] for row in topic["partition_responses"]] == list(range(MANY))
    assert {row["error_code"] for row in topic["partition_responses"]} == {0}
    assert wait < BOUND


def test_a_commit_for_many_partitions_and_its_end_stop_nobody(wide: BrokerProcess) -> None:
    rows = [{"partition_index": index, "committed_offset": 5} for index in range(MANY)]
    topics = [{"name": "wide", "partitions": rows}]
    answer, wait = attack(wide, OFFSET_COMMIT, 8, group_id="many", generation_id_or_member_epoch=-1, topics=topics)
    assert {row["error_code"] for row in answer["topics"][0]["partitions"]} == {0}
    assert wait < BOUND
    answer, wait = attack(wide, DELETE_GROUPS, 2, groups_names=["many"])
    assert wait < BOUND


def test_a_committed_text_that_is_asked_for_often_stops_nobody(wide: BrokerProcess) -> None:
    rows = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": "x" * 4096}]
    commit = {"group_id": "text", "generation_id_or_member_epoch": -1, "topics": [{"name": "wide", "partitions": rows}]}
    set_up(wide.port, lambda client: client.ask(OFFSET_COMMIT, 8, **commit))
    topics = [{"name": "wide", "partition_indexes": [0] * 40_000}]
    answer, wait = attack(wide, OFFSET_FETCH, 8, groups=[{"group_id": "text", "topics": topics}])
    assert len(answer["groups"][0]["topics"][0]["partitions"]) == 40_000
    assert wait < BOUND


def test_no_later_commit_of_a_connection_overtakes_a_large_one(wide: BrokerProcess) -> None:
    def commit(client: RawClient, rows: int, offset: int) -> None:
        partitions = [{"partition_index": index, "committed_offset": offset} for index in range(rows)]
        topics = [{"name": "wide", "partitions": partitions}]
        values = {"group_id": "order", "generation_id_or_member_epoch": -1, "topics": topics}
        client.send(OFFSET_COMMIT, 8, values)

    async def work(client: RawClient) -> list[int]:
        for offset, rows in enumerate((MANY, 3, 1000, 2, 100, 1)):
            commit(client, rows, offset)
        asked = [{"name": "wide", "partition_indexes": [0, 1, 2, 99, 999, MANY - 1]}]
        for _ in range(6):
            assert (await client.reply())["topics"][0]["partitions"][0]["error_code"] == 0
        (topic,) = (await client.ask(OFFSET_FETCH, 7, group_id="order", topics=asked))["topics"]
        return [row["committed_offset"] for row in topic["partitions"]]

    assert set_up(wide.port, work) == [5, 4, 4, 4, 2, 0]
