"""Producers of Python, side by side: messages per second, and what a million of them cost the client's processor.

    python -m benchmarks.producers [--rounds 3] [--messages 300000]

One broker of ours, topics that answer from the page cache; each producer in a process of its own, with acks=all, in
turns. `send` means: a window of messages, then wait until all of them are stored, then the next window.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from benchmarks.peers.korvet import Korvet
from benchmarks.system import empty
from korvet_fast.client import AsyncProducer
from korvet_fast.client.connection import connect
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

WINDOW: Final = 20_000  # messages on their way
ROWS: Final = 100_000  # of one `send_many`
WARM: Final = 2 * WINDOW  # messages that do not count: connections, metadata, caches
BATCH: Final = 131_072  # bytes of a batch, for all of them
KEYS: Final = 10_000


class Load:
    """The work of one process: it sends `values` to `topic`."""

    def __init__(self, address: str, topic: str, partitions: int, size: int) -> None:
        self.address = address
        self.topic = topic
        self.partitions = partitions
        self.value = bytes(size)
        self.keys = [b"key-%d" % number for number in range(KEYS)]


Send = Callable[[int], Coroutine[Any, Any, None]]


async def korvet_send(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    async with AsyncProducer(load.address, acks="all", batch_size=BATCH) as p:

        async def send(count: int) -> None:
            topic, value = load.topic, load.value
            for _ in range(count // WINDOW):
                sent = [p.send(topic, value) for _ in range(WINDOW)]
                await p.flush()
                for each in sent:
                    each.result()

        await measure(send)


async def korvet_keys(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    async with AsyncProducer(load.address, acks="all", batch_size=BATCH) as p:

        async def send(count: int) -> None:
            topic, value, keys = load.topic, load.value, load.keys
            for _ in range(count // WINDOW):
                sent = [p.send(topic, value, key=keys[n % KEYS]) for n in range(WINDOW)]
                await p.flush()
                for each in sent:
                    each.result()

        await measure(send)


async def korvet_partitions(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    async with AsyncProducer(load.address, acks="all", batch_size=BATCH, buffer_memory=1 << 28) as p:

        async def send(count: int) -> None:
            topic, value, many = load.topic, load.value, load.partitions
            for _ in range(max(1, count // (5 * WINDOW))):
                sent = [p.send(topic, value, partition=n % many) for n in range(min(count, 5 * WINDOW))]
                await p.flush()
                for each in sent:
                    each.result()

        await measure(send)


async def korvet_columns(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    async with AsyncProducer(load.address, acks="all", batch_size=BATCH) as p:

        async def send(count: int) -> None:
            for start in range(0, count, ROWS):
                rows = min(ROWS, count - start)
                found = await p.send_many(load.topic, None, [load.value] * rows)
                assert len(found.offsets) == rows

        await measure(send)


async def korvet_keyed_columns(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    async with AsyncProducer(load.address, acks="all", batch_size=BATCH) as p:

        async def send(count: int) -> None:
            for start in range(0, count, ROWS):
                rows = min(ROWS, count - start)
                keys = (load.keys * (rows // KEYS + 1))[:rows]
                found = await p.send_many(load.topic, keys, [load.value] * rows)
                assert len(found.offsets) == rows

        await measure(send)


async def aiokafka_send(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]], keyed: bool = False) -> None:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=load.address, acks="all", max_batch_size=BATCH) as p:

        async def send(count: int) -> None:
            topic, value, keys = load.topic, load.value, load.keys
            for _ in range(count // WINDOW):
                if keyed:
                    sent = [await p.send(topic, value, key=keys[n % KEYS]) for n in range(WINDOW)]
                else:
                    sent = [await p.send(topic, value) for _ in range(WINDOW)]
                await p.flush()
                for each in sent:
                    each.result()

        await measure(send)


async def aiokafka_keys(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    await aiokafka_send(load, measure, keyed=True)


async def confluent_produce(
    load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]], keyed: bool = False
) -> None:
    from confluent_kafka import Producer

    p = Producer({"bootstrap.servers": load.address, "acks": "all", "queue.buffering.max.messages": 1_000_000})

    async def send(count: int) -> None:
        topic, value, keys = load.topic, load.value, load.keys
        for _ in range(count // WINDOW):
            for n in range(WINDOW):
                if keyed:
                    p.produce(topic, value, key=keys[n % KEYS])
                else:
                    p.produce(topic, value)
            assert p.flush() == 0

    await measure(send)


async def confluent_keys(load: Load, measure: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
    await confluent_produce(load, measure, keyed=True)


CONTESTANTS: Final[dict[str, Callable[[Load, Callable[[Send], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]]]
CONTESTANTS = {
    "korvet send": korvet_send,
    "korvet send, keys": korvet_keys,
    "korvet send, partition named": korvet_partitions,
    "korvet send_many": korvet_columns,
    "korvet send_many, keys": korvet_keyed_columns,
    "aiokafka send": aiokafka_send,
    "aiokafka send, keys": aiokafka_keys,
    "confluent produce": confluent_produce,
    "confluent produce, keys": confluent_keys,
}


def run_contestant(name: str, load: Load, messages: int) -> dict[str, float]:
    """In the contestant's own process: seconds of processor and of wall for `messages`."""
    found: dict[str, float] = {}

    async def measure(send: Send) -> None:
        await send(WARM)
        used, began = time.process_time(), time.perf_counter()
        await send(messages)
        found.update(cpu=time.process_time() - used, wall=time.perf_counter() - began)

    asyncio.run(CONTESTANTS[name](load, measure))
    return found


async def create(address: str, topic: str, partitions: int) -> None:
    host, _, port = address.rpartition(":")
    connection = await connect(Address(host, int(port)), 60.0)
    row = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
    row["configs"] = [{"name": "durability", "value": "written"}]
    answer = await connection.request(CREATE_TOPICS, {"topics": [row], "timeout_ms": 60_000})
    assert answer["topics"][0]["error_code"] == 0, answer
    await connection.close()


ROWS_OF_TABLE: Final = [
    ("korvet send", 100, 1), ("aiokafka send", 100, 1), ("confluent produce", 100, 1), ("korvet send_many", 100, 1),
    ("korvet send", 1000, 1), ("aiokafka send", 1000, 1), ("confluent produce", 1000, 1), ("korvet send_many", 1000, 1),
    ("korvet send, keys", 100, 6), ("aiokafka send, keys", 100, 6), ("confluent produce, keys", 100, 6),
    ("korvet send_many, keys", 100, 6),
    ("korvet send, partition named", 100, 1), ("korvet send, partition named", 100, 1000), ("korvet send", 100, 1000),
]  # fmt: skip


def measure_all(address: str, rounds: int, messages: int, only: str) -> None:
    results: dict[tuple[str, int, int], list[dict[str, float]]] = {}
    rows = [row for row in ROWS_OF_TABLE if only in row[0]]
    for number in range(rounds):
        for name, size, partitions in rows if number % 2 == 0 else reversed(rows):
            topic = f"{name}-{size}-{partitions}-{number}".replace(" ", "_").replace(",", "")
            asyncio.run(create(address, topic, partitions))
            command = [sys.executable, "-m", "benchmarks.producers", "--contestant", name, "--address", address]
            command += ["--topic", topic, "--partitions", str(partitions), "--size", str(size)]
            command += ["--messages", str(messages if size < 1000 else messages // 2)]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found = json.loads(out.splitlines()[-1])
            results.setdefault((name, size, partitions), []).append(found)
    report(results, messages)


# What a row is held against, and how many times as fast it is wanted; below 1: as much slower as it may be.
RATIOS: Final = [
    (("korvet send", 100, 1), ("aiokafka send", 100, 1), 3.0),
    (("korvet send", 1000, 1), ("aiokafka send", 1000, 1), 3.0),
    (("korvet send, keys", 100, 6), ("aiokafka send, keys", 100, 6), 3.0),
    (("korvet send_many", 100, 1), ("confluent produce", 100, 1), 2.0),
    (("korvet send_many", 1000, 1), ("confluent produce", 1000, 1), 2.0),
    (("korvet send_many, keys", 100, 6), ("confluent produce, keys", 100, 6), 2.0),
    (("korvet send_many", 100, 1), ("aiokafka send", 100, 1), 10.0),
    (("korvet send_many", 1000, 1), ("aiokafka send", 1000, 1), 10.0),
    (("korvet send_many, keys", 100, 6), ("aiokafka send, keys", 100, 6), 10.0),
    (("korvet send, partition named", 100, 1000), ("korvet send, partition named", 100, 1), 1 / 1.3),
]  # fmt: skip


def report(results: dict[tuple[str, int, int], list[dict[str, float]]], messages: int) -> None:
    """The rows, then the ratios that are wanted: the median of the rounds' ratios, of wall and of processor time."""
    print(f"{'':42}{'messages/s':>12}{'CPU s / million':>18}")
    for row, found in results.items():
        count = messages if row[1] < 1000 else messages // 2
        rate = statistics.median(count / each["wall"] for each in found)
        cpu = statistics.median(each["cpu"] for each in found) / count * 1e6
        print(f"{name_row(row):42}{rate:>12,.0f}{cpu:>18.2f}")
    print(f"\n{'times as fast as':84}{'wanted':>8}{'wall':>8}{'CPU':>8}")
    for row, other, wanted in RATIOS:
        if row in results and other in results:
            pairs = list(zip(results[row], results[other], strict=True))
            wall, cpu = (statistics.median(b[kind] / a[kind] for a, b in pairs) for kind in ("wall", "cpu"))
            print(f"{name_row(row):42}{name_row(other):42}{wanted:>8.2f}{wall:>8.2f}{cpu:>8.2f}")


def name_row(row: tuple[str, int, int]) -> str:
    name, size, partitions = row
    return f"{name}, {size} B, {partitions} p."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--contestant", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--topic", default="t", help=argparse.SUPPRESS)
    parser.add_argument("--partitions", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=100, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.contestant:
        load = Load(asked.address, asked.topic, asked.partitions, asked.size)
        print(json.dumps(run_contestant(asked.contestant, load, asked.messages)))
        return
    with empty() as directory, Korvet(directory) as korvet:
        measure_all(korvet.address, asked.rounds, asked.messages, asked.only)


if __name__ == "__main__":
    main()
