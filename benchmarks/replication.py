"""What copies cost: topics with one copy and with three, in turns, and a follower that comes back.

    python -m benchmarks.replication [--rounds 3] [--megabytes 64] [--missed 256]

Three brokers over files on this machine. Batches of 64 KB, acks=all, one producer (librdkafka); three copies with
min.insync.replicas=2. Then broker 3 is killed, so many megabytes are written without it, and it comes back: the time
until it is in sync, beside a bare copy of as many bytes over loopback into a file that is flushed.
"""

import argparse
import asyncio
import os
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Producer

from korvet_fast.cli.demo_brokers import DemoBrokers
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.leaders import TIMEOUT_MS, find_partition
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

SIZE = 1000  # bytes of a record
BATCH = 65_536
MEGABYTE = 1 << 20
TARGETS = {"three copies / one copy": 0.3, "catching up / bare copy": 0.5}


def produce(bootstrap: str, topic: str, megabytes: int) -> float:
    """Send so much to partition 0; MB a second."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "batch.size": BATCH,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 64 * 1024,
            "log_level": 0,
        }
    )
    value, count = os.urandom(SIZE), megabytes * MEGABYTE // SIZE
    producer.list_topics(topic, timeout=60)
    began = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(300):
        raise SystemExit(f"{topic}: not everything was acknowledged")
    return count * SIZE / MEGABYTE / (time.perf_counter() - began)


def copy_barely(place: Path, size: int) -> float:
    """Send so many bytes over loopback into a file, and flush it; MB a second."""
    data = memoryview(os.urandom(MEGABYTE))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            with socket.create_connection(server.getsockname()) as there:
                for _ in range(size // MEGABYTE):
                    there.sendall(data)

        began = time.perf_counter()
        thread = threading.Thread(target=send)
        thread.start()
        here, _ = server.accept()
        with here, (place / "bare").open("wb", buffering=0) as file:
            while received := here.recv(MEGABYTE):
                file.write(received)
            os.fsync(file.fileno())
        thread.join()
    return size / MEGABYTE / (time.perf_counter() - began)


async def create(cluster: Cluster, topic: str, factor: int) -> None:
    """A topic of one partition."""
    configs = [{"name": "min.insync.replicas", "value": str(factor // 2 + 1)}]
    row = {"name": topic, "num_partitions": 1, "replication_factor": factor, "configs": configs}
    answer = await cluster.ask_controller(CREATE_TOPICS, {"topics": [row], "timeout_ms": TIMEOUT_MS})
    check_error_code(topic, answer["topics"][0]["error_code"], answer["topics"][0]["error_message"])
    await await_copies(cluster, topic, factor)


async def await_copies(cluster: Cluster, topic: str, count: int) -> dict[str, object]:
    """Until the topic has a leader, and so many brokers are in sync."""
    while True:
        try:
            found = await find_partition(cluster, topic, 0)
            if found["leader_id"] > 0 and len(found["isr_nodes"]) == count:
                return found
        except ClientError:
            pass  # brokers come and go
        await asyncio.sleep(0.05)


async def measure(place: Path, rounds: int, megabytes: int, missed: int) -> dict[str, list[float]]:
    """The rows of the table, each with what every round gave."""
    rows: dict[str, list[float]] = {name: [] for name in ("one copy", "three copies", "catching up", "bare copy")}
    async with DemoBrokers(place) as brokers, Cluster(list(brokers.addresses.values())) as cluster:
        bootstrap = ",".join(map(str, brokers.addresses.values()))
        await create(cluster, "one", 1)
        await create(cluster, "three", 3)
        for _ in range(rounds):
            for topic, row in (("one", "one copy"), ("three", "three copies")):
                rows[row].append(await asyncio.to_thread(produce, bootstrap, topic, megabytes))
        leader = (await await_copies(cluster, "three", 3))["leader_id"]
        late = 3 if leader != 3 else 2  # not broker 1, which leads the metadata log
        for _ in range(rounds):
            await brokers.kill(late)
            await await_copies(cluster, "three", 2)
            await asyncio.to_thread(produce, bootstrap, "three", missed)
            await brokers.start(late)
            began = time.perf_counter()
            await await_copies(cluster, "three", 3)
            rows["catching up"].append(missed / (time.perf_counter() - began))
            rows["bare copy"].append(await asyncio.to_thread(copy_barely, place, missed * MEGABYTE))
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--missed", type=int, default=256)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="korvet-replication-") as place:
        rows = asyncio.run(measure(Path(place), asked.rounds, asked.megabytes, asked.missed))
    middle = {name: statistics.median(values) for name, values in rows.items()}
    for name, values in rows.items():
        print(f"{name:14} {middle[name]:8.1f} MB/s   ({', '.join(f'{value:.1f}' for value in values)})")
    for name, target in TARGETS.items():
        above, below = name.split(" / ")
        print(f"{name:26} {middle[above] / middle[below]:5.2f}   wanted: {target}")


if __name__ == "__main__":
    main()
