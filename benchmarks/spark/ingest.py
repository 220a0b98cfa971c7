"""What `ingest --key` pays for the order of keys, beside `--unordered`, in turns: `python -m benchmarks.spark.ingest`.

One CSV file that Spark reads in eight tasks goes to topics of four partitions, in one session of Spark on `local[2]`.
After each run the topic is read again: all records are there, and the steps back within a key are counted.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import PeerError
from benchmarks.peers.spark.environment import CACHE
from benchmarks.spark.contestants import admin, cpu_seconds
from korvet_fast.spark import jobs

KEYS, PARTITIONS, SPLITS = 16, 4, 8
WAYS = {"--unordered": False, "--key": True}
PATIENCE = 60  # seconds
SETTINGS = {"spark.driver.memory": "2g", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def make_file(place: Path, rows: int) -> Path:
    """A CSV file of rows with a key, a number that counts up, and 80 more characters."""
    file = place / "rows.csv"
    with file.open("w") as lines:
        lines.write("key,number,text\n")
        lines.writelines(f"key-{number % KEYS},{number},{'v' * 80}\n" for number in range(rows))
    return file


def steps_back(broker: Korvet, topic: str, rows: int) -> int:
    """How often a record of a key has a lower number than the one before it. Raises PeerError if any is missing."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "order"})
    last: dict[bytes, int] = defaultdict(lambda: -1)
    steps = 0
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        for _ in range(rows):
            message = consumer.poll(PATIENCE)
            if message is None or message.error() is not None:
                raise PeerError(f"{topic} has fewer than {rows} records")
            key, number = message.key(), int(message.value())
            steps += number < last[key]
            last[key] = number
    finally:
        consumer.close()
    return steps


def measure(spark: jobs.SparkSession, broker: Korvet, file: Path, topic: str, *, ordered: bool) -> tuple[float, float]:
    """Seconds by the clock, and of the processors for Spark with its Python."""
    client = admin(broker)
    config = {"durability": "written"}
    client.create_topics([NewTopic(topic, PARTITIONS, 1, config=config)])[topic].result(PATIENCE)
    family = psutil.Process().children(recursive=True)
    used, began = cpu_seconds([psutil.Process(), *family]), time.perf_counter()
    rows = jobs.read_files(spark, [str(file)], "csv", "key STRING, number LONG, text STRING", {})
    jobs.write_records(jobs.make_records(rows, "key", "number", ordered=ordered), broker.address, topic, {})
    seconds = time.perf_counter() - began
    family = psutil.Process().children(recursive=True)
    return seconds, cpu_seconds([psutil.Process(), *family]) - used


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.ingest", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600_000, help="how many (600,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    options = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    measured: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    steps = dict.fromkeys(WAYS, 0)
    with tempfile.TemporaryDirectory(prefix="bench-ingest-", dir=CACHE) as name:
        place = Path(name)
        file = make_file(place, options.rows)
        conf = {**SETTINGS, "spark.sql.files.maxPartitionBytes": str(-(-file.stat().st_size // SPLITS))}
        conf["spark.local.dir"] = name
        spark = jobs.open_session(jobs.session_settings("ingest", "local[2]", conf, short=False), conf)
        with Korvet(place / "broker") as broker:
            for number in range(-1, options.rounds):  # the first one does not count: JVMs compile what is hot
                for way in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
                    topic = f"{way.strip('-')}-{number + 1}"
                    figures = measure(spark, broker, file, topic, ordered=WAYS[way])
                    steps[way] += steps_back(broker, topic, options.rows)
                    if number >= 0:
                        measured[way].append(figures)
                    print(f"  {topic}: {figures[0]:.2f} s, {figures[1]:.2f} CPU-s", file=sys.stderr)
        spark.stop()
    medians = {way: [statistics.median(each) for each in zip(*measured[way], strict=True)] for way in WAYS}
    for way, (seconds, cpu) in medians.items():
        print(f"{way:12} {seconds:6.2f} s {cpu:6.2f} CPU-s  {steps[way]} steps back within keys")
    ratios = [ordered / without for ordered, without in zip(medians["--key"], medians["--unordered"], strict=True)]
    print(f"--key takes {ratios[0]:.2f} times as long, and {ratios[1]:.2f} times the processors' time of Spark")
    return int(steps["--key"] > 0)


if __name__ == "__main__":
    sys.exit(main())
