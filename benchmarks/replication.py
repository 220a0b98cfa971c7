"""What copies cost: three brokers over files beside one copy and beside Apache Kafka; a follower that comes back.

    python -m benchmarks.replication [--rounds 3] [--seconds 2] [--missed 1000] [--only copies] [--place /dev/shm]

Three brokers on this machine, three copies, min.insync.replicas=2, acks=all. The client is the load generator: batches
of 64 KB, five under way, at the leader of a partition. Rows are measured in turns. `--place`: where all files are. On a
disk that others use too, or in a virtual machine, the rows say how fast that flushes; in memory, what the brokers take.

copies       topics with one copy and with three
kafka        three copies here and at three nodes of Apache Kafka (KRaft), as it comes. Kafka leaves flushing to the
             operating system; here a record is on the disks of all in sync before it is acknowledged
catching up  a follower is killed, so many MB are written without it, and it comes back: from when it is ready until it
             is in sync, beside a bare copy of as many bytes over loopback into a file that is flushed. Meanwhile a
             client writes 50 records of 1 KB a second to another topic, for no longer than the follower takes; its
             median is compared with that before. What others feel of a bare copy, which no broker takes part in, is
             what the machine and its disk take; the rest is ours
"""

import argparse
import os
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generator import build, load
from benchmarks.peers.kafka.node import make_nodes
from benchmarks.peers.trio import Leader, Trio, make_brokers

MEGABYTE = 1_000_000
PIECE = 1 << 20
# MB/s that no follower reaches: others are watched for as long as this would take, so one is at work meanwhile.
FASTEST = 1_000
BATCH = ("--batch-bytes", "65536", "--record-bytes", "1000", "--acks", "-1")


@dataclass(frozen=True)
class Row:
    """A ratio: what was measured above and below the line in each round, and what is wanted of it."""

    name: str
    above: list[float]
    below: list[float]
    unit: str
    wanted: str

    def tell(self) -> str:
        """The row of the table."""
        ratios = [above / below for above, below in zip(self.above, self.below, strict=True)]
        told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        above, below = statistics.median(self.above), statistics.median(self.below)
        return (
            f"{self.name:44} {above:9,.1f} {below:9,.1f} {self.unit:5} {statistics.median(ratios):6.2f} x "
            f"({told})   wanted: {self.wanted}"
        )


@dataclass(frozen=True)
class Speed:
    """MB of values a second, and seconds of processor time of all brokers for a GB of them."""

    rate: float
    work: float


def produce(leader: Leader, topic: str, seconds: float, *more: str) -> Speed:
    """Five batches under way for so many seconds."""
    timing = ("--seconds", str(seconds), "--warm-up", str(seconds / 4))
    figures = load(leader, "produce", topic, *BATCH, *timing, *more)
    return Speed(figures["mb_per_s"], figures["broker_cpu_s_per_gb"])


def compare(loads: tuple[Callable[[], Speed], Callable[[], Speed]], rounds: int) -> list[list[Speed]]:
    """Both in turns, each round in the other order; what each gave."""
    found: list[list[Speed]] = [[], []]
    for number in range(rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            found[side].append(loads[side]())
    return found


def tell_both(name: str, found: list[list[Speed]], wanted: str) -> list[Row]:
    """The rows of two loads: speed, and processor time."""
    above, below = found
    return [
        Row(name, [one.rate for one in above], [one.rate for one in below], "MB/s", wanted),
        Row(f"  processor time, {name}", [one.work for one in above], [one.work for one in below], "s/GB", "-"),
    ]


def measure_copies(ours: Trio, rounds: int, seconds: float) -> list[Row]:
    """Topics with three copies and with one."""
    ours.create("one", 1)
    ours.create("three", 3)
    one, three = ours.find_leader("one"), ours.find_leader("three")
    loads = (lambda: produce(three, "three", seconds), lambda: produce(one, "one", seconds))
    return tell_both("three copies / one copy", compare(loads, rounds), "0.3")


def measure_kafka(ours: Trio, kafka: Trio, rounds: int, seconds: float) -> list[Row]:
    """Three copies here and there."""
    for trio in (ours, kafka):
        trio.create("beside", 3)
        produce(trio.find_leader("beside"), "beside", 5 * seconds)  # the JVM compiles what is hot
    leaders = [trio.find_leader("beside") for trio in (ours, kafka)]
    loads = (lambda: produce(leaders[0], "beside", seconds), lambda: produce(leaders[1], "beside", seconds))
    return tell_both("three copies / Apache Kafka's three", compare(loads, rounds), "2")


def copy_barely(place: Path, size: int) -> float:
    """Send so many bytes over loopback into a file, and flush it; MB a second."""
    data = memoryview(bytes(PIECE))
    path = place / "bare"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            with socket.create_connection(server.getsockname()) as there:
                for _ in range(size // PIECE):
                    there.sendall(data)

        began = time.perf_counter()
        thread = threading.Thread(target=send)
        thread.start()
        here, _ = server.accept()
        room = memoryview(bytearray(PIECE))
        with here, path.open("wb", buffering=0) as file:
            while received := here.recv_into(room):
                file.write(room[:received])
            os.fsync(file.fileno())
        thread.join()
    path.unlink()
    return size / MEGABYTE / (time.perf_counter() - began)


def write(leader: Leader, topic: str, megabytes: int) -> int:
    """Write at least so much; the bytes of values written."""
    written = 0.0
    while written < megabytes * MEGABYTE:
        written += load(leader, "produce", topic, *BATCH, "--seconds", "1", "--warm-up", "0")["accepted_records"] * 1000
    return int(written)


def measure_latency(leader: Leader, seconds: float) -> float:
    """The median time of 50 small produces a second to the topic `others`, in ms."""
    rate = ("--rate", "50", "--seconds", str(seconds), "--warm-up", "0.1")
    sizes = ("--batch-bytes", "1100", "--record-bytes", "1000", "--acks", "-1")
    return load(leader, "produce", "others", *sizes, *rate)["p50_us"] / 1000


def measure_beside_copy(leader: Leader, place: Path, size: int, seconds: float) -> float:
    """As `measure_latency`, while nothing but a bare copy goes on beside it."""
    with ThreadPoolExecutor(1) as pool:
        latency = pool.submit(measure_latency, leader, seconds)
        while not latency.done():
            copy_barely(place, size)
        return latency.result()


def measure_catching_up(ours: Trio, place: Path, rounds: int, missed: int) -> list[Row]:
    """A follower that comes back, and what others feel of it."""
    ours.create("late", 3)
    ours.create("others", 3)
    leaders = {ours.find_leader(topic).port for topic in ("late", "others")}
    # Not one that leads a topic, or the metadata log, as the first does.
    late = next(broker for number, broker in ours.brokers.items() if number != 1 and broker.port not in leaders)
    caught, bare, busy, calm, beside = [], [], [], [], []
    seconds = missed / FASTEST
    for _ in range(rounds):
        late.kill()
        ours.await_copies("late", 2)
        ours.await_copies("others", 2)
        size = write(ours.find_leader("late"), "late", missed)
        calm.append(measure_latency(ours.find_leader("others"), 4 * seconds))
        bare.append(copy_barely(place, size))
        beside.append(measure_beside_copy(ours.find_leader("others"), place, size, seconds))
        with ThreadPoolExecutor(1) as pool:
            late.start()
            began = time.perf_counter()
            latency = pool.submit(measure_latency, ours.find_leader("others"), seconds)
            ours.await_copies("late", 3)
            caught.append(size / MEGABYTE / (time.perf_counter() - began))
            busy.append(latency.result())
    return [
        Row("catching up / bare copy", caught, bare, "MB/s", "0.5"),
        Row("others' median meanwhile / before", busy, calm, "ms", "at most 1.5"),
        Row("others' median beside a bare copy / before", beside, calm, "ms", "-"),
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--missed", type=int, default=1000, help="MB that the follower lacks")
    parser.add_argument("--place", help="a directory; the system's for temporary files if it is not given")
    parser.add_argument("--only", choices=("copies", "kafka", "catching"), help="these rows")
    asked = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory(prefix="korvet-replication-", dir=asked.place) as name:
        place = Path(name)
        with Trio("ours", make_brokers(place / "ours")) as ours:
            if asked.only in (None, "copies"):
                tell(measure_copies(ours, asked.rounds, asked.seconds))
            if asked.only in (None, "kafka"):
                with Trio("Apache Kafka", make_nodes(place / "kafka")) as kafka:
                    tell(measure_kafka(ours, kafka, asked.rounds, asked.seconds))
            if asked.only in (None, "catching"):
                tell(measure_catching_up(ours, place, asked.rounds, asked.missed))


def tell(rows: list[Row]) -> None:
    """Print these rows."""
    for row in rows:
        print(row.tell(), flush=True)


if __name__ == "__main__":
    main()
