"""Producers of Python, side by side: messages per second, and what a million of them cost the client's processor.

    python -m benchmarks.producers [--rounds 3] [--windows 6] [--only TEXT] [--loop uvloop]

One broker of ours on one processor, topics that answer from the page cache; each producer in a process of its own on
another processor, in turns, with the settings of `contestants.py`. A window of messages is sent, and the next one when
all of it is stored. Keys and values are made before; two windows do not count.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Final

import uvloop

from benchmarks.peers.korvet import Korvet
from benchmarks.producers.contestants import CONTESTANTS, WINDOW, Load
from benchmarks.system import empty
from korvet_fast.client.connection import connect
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

WARM: Final = 2  # windows that do not count: connections, metadata, caches

Row = tuple[str, int, int]  # contestant, bytes of a value, partitions
Seconds = dict[str, float]  # of one run: "cpu" and "wall"

ROWS: Final[list[Row]] = [
    ("korvet send", 100, 1), ("aiokafka send", 100, 1), ("confluent produce", 100, 1), ("korvet send_many", 100, 1),
    ("korvet send", 1000, 1), ("aiokafka send", 1000, 1), ("confluent produce", 1000, 1), ("korvet send_many", 1000, 1),
    ("korvet send, keys", 100, 6), ("aiokafka send, keys", 100, 6), ("confluent produce, keys", 100, 6),
    ("korvet send_many, keys", 100, 6),
    ("korvet send, partition named", 100, 1), ("korvet send, partition named", 100, 1000), ("korvet send", 100, 1000),
]  # fmt: skip

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


async def run_contestant(name: str, load: Load, windows: int) -> Seconds:
    """In the contestant's own process: seconds of processor and of wall for the windows that count."""
    async with CONTESTANTS[name](load) as send_window:
        for _ in range(WARM):
            await send_window()
        used, began = time.process_time(), time.perf_counter()
        for _ in range(windows):
            await send_window()
        return {"cpu": time.process_time() - used, "wall": time.perf_counter() - began}


async def create(address: str, topic: str, partitions: int) -> None:
    host, _, port = address.rpartition(":")
    connection = await connect(Address(host, int(port)), 60.0)
    row = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
    row["configs"] = [{"name": "durability", "value": "written"}]
    answer = await connection.request(CREATE_TOPICS, {"topics": [row], "timeout_ms": 60_000})
    assert answer["topics"][0]["error_code"] == 0, answer
    await connection.close()


def measure_all(address: str, asked: argparse.Namespace) -> dict[Row, list[Seconds]]:
    results: dict[Row, list[Seconds]] = {}
    rows = [row for row in ROWS if asked.only in name_row(row)]
    for number in range(asked.rounds):
        for name, size, partitions in rows if number % 2 == 0 else reversed(rows):
            topic = f"{name}-{size}-{partitions}-{number}".replace(" ", "_").replace(",", "")
            asyncio.run(create(address, topic, partitions))
            command = [sys.executable, "-m", "benchmarks.producers", "--contestant", name, "--address", address]
            command += ["--topic", topic, "--partitions", str(partitions), "--size", str(size)]
            command += ["--windows", str(asked.windows), "--loop", asked.loop]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            results.setdefault((name, size, partitions), []).append(json.loads(out.splitlines()[-1]))
    return results


def report(results: dict[Row, list[Seconds]], messages: int) -> None:
    """The rows, then the ratios that are wanted: the median of the rounds' ratios, of wall and of processor time."""
    print(f"{'':42}{'messages/s':>12}{'CPU s / million':>18}")
    for row, found in results.items():
        rate = statistics.median(messages / each["wall"] for each in found)
        cpu = statistics.median(each["cpu"] for each in found) / messages * 1e6
        print(f"{name_row(row):42}{rate:>12,.0f}{cpu:>18.2f}")
    print(f"\n{'times as fast as':84}{'wanted':>8}{'wall':>8}{'CPU':>8}")
    for row, other, wanted in RATIOS:
        if row in results and other in results:
            pairs = list(zip(results[row], results[other], strict=True))
            wall, cpu = (statistics.median(b[kind] / a[kind] for a, b in pairs) for kind in ("wall", "cpu"))
            print(f"{name_row(row):42}{name_row(other):42}{wanted:>8.2f}{wall:>8.2f}{cpu:>8.2f}")


def name_row(row: Row) -> str:
    name, size, partitions = row
    return f"{name}, {size} B, {partitions} p."


def run_on(processor: int) -> None:
    """This process, and those that it starts, run on one processor of the machine."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[processor % len(allowed)]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--windows", type=int, default=6, help=f"of {WINDOW:,} messages")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--loop", choices=["uvloop", "asyncio"], default="uvloop", help="event loop of the producers")
    parser.add_argument("--contestant", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--topic", default="t", help=argparse.SUPPRESS)
    parser.add_argument("--partitions", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=100, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.contestant:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        run_on(0)
        load = Load(asked.address, asked.topic, asked.partitions, asked.size)
        factory: Any = uvloop.new_event_loop if asked.loop == "uvloop" else None
        with asyncio.Runner(loop_factory=factory) as runner:
            print(json.dumps(runner.run(run_contestant(asked.contestant, load, asked.windows))))
        return
    run_on(1)
    with empty() as directory, Korvet(directory) as korvet:
        results = measure_all(korvet.address, asked)
    report(results, asked.windows * WINDOW)


if __name__ == "__main__":
    main()
