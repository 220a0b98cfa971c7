"""Kafka 0.7's listener beside Kafka's, of one broker over files, in turns.

    python -m benchmarks.legacy [--rounds 5] [--sets 1500] [--reads 500]

One connection each. PRODUCE: the same 200 values of 200 bytes in every request, encoded beforehand, all sent without
waiting; it ends when all of it is durable. FETCH: 1 MB at a time, each asked for when the one before has arrived. The
original's published figures were 50 MB/s and 400,000 messages/s, on one machine of 2011.

Kafka's listener gives whole batches, a little less than a MiB. 0.7's is asked for as many bytes as that: an answer of a
MiB and more fills the receiver's window, and a sender that waits in the middle takes up to twice as long.

Each ratio is of one round: by the clock, and by the processor time that the broker's threads took.
"""

import argparse
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import korvet_fast._native as native
from benchmarks.peers.process import Peer, free_ports
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

TARGET = 0.6  # of Kafka's listener
RECORDS, SIZE = 200, 200
VALUE = b"0123456789" * (SIZE // 10)
MESSAGE = struct.pack(">ibbI", SIZE + 6, 1, 0, zlib.crc32(VALUE)) + VALUE
PAGE = 1 << 20
ERROR = 2  # bytes in front of the messages in an answer to FETCH
HEADER: dict[str, Any] = {"correlation_id": 1, "client_id": None}


class Broker(Peer):
    """Korvet Fast of this tree, over files, with both listeners."""

    name = "embedded"

    def __init__(self, directory: Path) -> None:
        first, self.old = free_ports(2)
        super().__init__(directory, first)

    def command(self) -> list[str]:
        listeners = ["--listen", f"kafka://{self.address}", "--listen", f"legacy://127.0.0.1:{self.old}"]
        store = f"file:{self.directory / 'data'}"
        return [sys.executable, "-m", "korvet_fast", "serve", "--store", store, *listeners]


Load: TypeAlias = Callable[[Broker, int], float]  # so many requests; bytes a second


class Figure(NamedTuple):
    """The result of one load: bytes a second, and seconds of the broker's processor time for a request."""

    rate: float
    busy: float


def produce_old(broker: Broker, sets: int) -> float:
    """Bytes of values a second."""
    request = _produce(MESSAGE * RECORDS)
    with socket.create_connection(("127.0.0.1", broker.old)) as client:
        started = time.perf_counter()
        for _ in range(sets):
            client.sendall(request)
        client.sendall(_request(4, struct.pack(">iqi", 0, -1, 1)))  # OFFSETS: answered when all of it is durable
        _take(client)
        return sets * RECORDS * SIZE / (time.perf_counter() - started)


def _produce(messages: bytes) -> bytes:
    return _request(0, struct.pack(">ii", 0, len(messages)) + messages)


def _request(number: int, rest: bytes) -> bytes:
    """A request of 0.7 that names the topic `old`; `rest`: what follows the name."""
    return _framed(struct.pack(">hh3s", number, 3, b"old") + rest)


def produce_new(broker: Broker, sets: int) -> float:
    """The same through Kafka's listener."""
    batch = native.build_batch(_columns(), 0, 0, -1, -1, -1)
    topics = [{"name": "new", "partition_data": [{"index": 0, "records": bytes(batch)}]}]
    values = HEADER | {"api_key": 0, "api_version": 9, "acks": -1, "timeout_ms": 30_000, "topic_data": topics}
    request = _framed(PRODUCE.request.encode(values, 9))
    with socket.create_connection(("127.0.0.1", broker.port)) as client:

        def send() -> None:
            for _ in range(sets):
                client.sendall(request)

        started = time.perf_counter()
        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(sets):
            _take(client)
        sender.join()
        return sets * RECORDS * SIZE / (time.perf_counter() - started)


def fetch_old(broker: Broker, reads: int) -> float:
    """Bytes a second, in answers as large as those of `fetch_new`."""
    with socket.create_connection(("127.0.0.1", broker.port)) as client:
        client.sendall(_page_request())
        size = _take(client)
    return _fetch(broker.old, _request(1, struct.pack(">iqi", 0, 0, size - ERROR)), reads)


def fetch_new(broker: Broker, reads: int) -> float:
    """The same through Kafka's listener."""
    return _fetch(broker.port, _page_request(), reads)


def _page_request() -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": PAGE}
    values = HEADER | {"api_key": 1, "api_version": 12, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": PAGE}
    values["topics"] = [{"topic": "new", "partitions": [partition]}]
    return _framed(FETCH.request.encode(values, 12))


def _fetch(port: int, request: bytes, reads: int) -> float:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started, size = time.perf_counter(), 0
        for _ in range(reads):
            client.sendall(request)
            size += _take(client)
        if size < reads * PAGE * 9 // 10:
            raise AssertionError(f"{reads} MB were asked for, and {size:,} bytes came")
        return size / (time.perf_counter() - started)


_ROOM = bytearray(PAGE + 4096)


def _take(client: socket.socket) -> int:
    """Receive one answer; its bytes."""
    view = memoryview(_ROOM)
    got = 0
    while got < 4:
        got += _receive(client, view[got:4])
    (size,) = struct.unpack_from(">i", _ROOM)
    got = 0
    while got < size:
        got += _receive(client, view[got:size])
    return int(size)


def _receive(client: socket.socket, view: memoryview) -> int:
    size = client.recv_into(view)
    if not size:
        raise ConnectionError("the broker closed the connection")
    return size


def _framed(request: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(request)) + request


def _columns() -> dict[str, Any]:
    return {
        "timestamp": array("q", [int(time.time() * 1000)] * RECORDS),
        "key_offsets": array("i", [0] * (RECORDS + 1)),
        "key": b"",
        "key_valid": bytes(RECORDS),
        "value_offsets": array("i", range(0, SIZE * (RECORDS + 1), SIZE)),
        "value": VALUE * RECORDS,
        "value_valid": b"\1" * RECORDS,
    }


def main() -> None:
    """Measure in turns, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.legacy", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", type=int, default=1500)
    parser.add_argument("--reads", type=int, default=500)
    given = parser.parse_args()
    loads: dict[str, tuple[Load, Load, int]] = {
        "produce": (produce_old, produce_new, given.sets),
        "fetch": (fetch_old, fetch_new, given.reads),
    }
    with tempfile.TemporaryDirectory() as directory, Broker(Path(directory)) as broker:
        _make_topic(broker)
        for old, new, _ in loads.values():
            old(broker, 50)
            new(broker, 50)
        print(f"{'':14} {'0.7':>8} {'Kafka':>8}   ratio (each round)")
        for name, (old, new, many) in loads.items():
            rounds = [(measure(broker, old, many), measure(broker, new, many)) for _ in range(given.rounds)]
            pairs = [(first.rate / 1e6, second.rate / 1e6) for first, second in rounds]
            print(_row(f"{name}, MB/s", pairs, [first / second for first, second in pairs]))
            pairs = [(first.busy * 1e6, second.busy * 1e6) for first, second in rounds]
            print(_row("  CPU us", pairs, [second / first for first, second in pairs]))


def measure(broker: Broker, load: Load, many: int) -> Figure:
    """Do this so many times."""
    before = spent(broker)
    rate = load(broker, many)
    return Figure(rate, (spent(broker) - before) / many)


def spent(broker: Peer) -> float:
    """Seconds of processor time that the broker's threads have taken."""
    threads = Path(f"/proc/{broker.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _row(name: str, pairs: list[tuple[float, float]], ratios: list[float]) -> str:
    first, second = (statistics.median(one) for one in zip(*pairs, strict=True))
    told = " ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    return f"{name:14} {first:8,.0f} {second:8,.0f}   {statistics.median(ratios):.2f} x ({told}), wanted: {TARGET:g} x"


def _make_topic(broker: Broker) -> None:
    """Kafka's topic is made by whoever asks for it by name."""
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1, "configs": [], "assignments": []}
    values = HEADER | {"api_key": 19, "api_version": 7, "topics": [topic], "timeout_ms": 30_000}
    with socket.create_connection(("127.0.0.1", broker.port)) as client:
        client.sendall(_framed(CREATE_TOPICS.request.encode(values, 7)))
        _take(client)


if __name__ == "__main__":
    main()
