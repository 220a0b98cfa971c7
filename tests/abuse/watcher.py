"""The well-behaved clients, and probes of the machine: `python -m abuse.watcher '<json>'`, until its input ends.

Writes a line for every wait into the file `waits`: role, start (monotonic), seconds. Roles: `ping`, `produce.<layout>`,
`fetch.<layout>`; and the machine's own: `echo` (a trivial server in another process), `flush` (a small file on the
broker's disk), `queue` (the broker's loop was ready to run and had no processor) and `steal` (another virtual machine
had a processor of this one). What was sent, acknowledged and read goes into the file `history`.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from abuse.prepared import STEADY
from abuse.wire import Line, encode
from batches import make_batch, read_rows
from kafka_server import API_VERSIONS, FETCH, INIT_PRODUCER_ID, LIST_OFFSETS, METADATA, PRODUCE

PAUSE = 0.005  # seconds between two requests of a client
FLUSHES = 0.05  # between two flushes of the probe
QUEUED = 1_000_000  # ns without a processor that are noted
TICKS = os.sysconf("SC_CLK_TCK")  # of /proc/stat, in a second
_STOLEN = 8  # column of /proc/stat
POLL = 0.02  # seconds that a fetch asks to wait for records
CATCH_UP = 60.0  # seconds that consumers have for the last that was produced
PATIENCE = 120.0  # seconds until a client takes its connection for dead
_REFUSED_FOR_GOOD = {45: "OUT_OF_ORDER_SEQUENCE_NUMBER", 47: "INVALID_PRODUCER_EPOCH", 59: "UNKNOWN_PRODUCER_ID"}
_DUPLICATE = 46

over = threading.Event()  # nothing is produced any more
produced: dict[str, int] = {}  # by layout: the highest offset that was acknowledged
reached: dict[str, int] = {}  # by layout: what its consumer reads next


class Book:
    """The two files, shared by the threads."""

    def __init__(self, waits: Path, history: Path) -> None:
        self._waits = waits.open("a", buffering=1)
        self._history = history.open("a", buffering=1)

    def wait(self, role: str, start: float, seconds: float) -> None:
        self._waits.write(f"{role} {start:.6f} {seconds:.6f}\n")

    def event(self, *words: object) -> None:
        self._history.write(" ".join(map(str, words)) + "\n")


class Caller:
    """A connection that is made again whenever it breaks; the wait goes on until an answer is there."""

    def __init__(self, port: int, book: Book, role: str) -> None:
        self._port, self._book, self._role = port, book, role
        self._line: Line | None = None

    def ask(self, key: int, version: int, *, asked: float = 0.0, **values: Any) -> dict[str, Any]:
        """The answer, and a note of the wait above the `asked` seconds that the request itself asks for."""
        start = time.monotonic()
        while True:
            try:
                if self._line is None:
                    self._line = Line(self._port, timeout=PATIENCE)
                answer = self._line.ask(key, version, **values)
                break
            except (OSError, EOFError) as error:
                self._book.event("broken", self._role, f"{time.monotonic():.3f}", type(error).__name__)
                if self._line is not None:
                    self._line.close()
                self._line = None
                time.sleep(0.01)
        self._book.wait(self._role, start, max(time.monotonic() - start - asked, 0.0))
        return answer


def ping(port: int, book: Book, layout: str) -> None:
    """The smallest requests there are."""
    caller = Caller(port, book, "ping")
    while True:
        caller.ask(API_VERSIONS, 3, client_software_name="c", client_software_version="1")
        time.sleep(PAUSE)
        caller.ask(METADATA, 12, topics=[{"name": f"{STEADY}.{layout}"}])
        time.sleep(PAUSE)


def produce(port: int, book: Book, layout: str) -> None:
    """An idempotent producer with acks=all: a batch is sent until it is acknowledged, then comes the next."""
    caller = Caller(port, book, f"produce.{layout}")
    known = caller.ask(INIT_PRODUCER_ID, 4, transaction_timeout_ms=1000)
    identity = known["producer_id"], known["producer_epoch"]
    number = 0
    while not over.is_set():
        numbers = range(number, number + 1 + number % 3)
        values = [f"{layout}:{each}".encode() for each in numbers]
        batch = make_batch(values, times=[int(time.time() * 1000)] * len(values), producer=(*identity, number))
        for each in numbers:
            book.event("sent", layout, each)
        topics = [{"name": f"{STEADY}.{layout}", "partition_data": [{"index": 0, "records": batch}]}]
        while True:
            answer = caller.ask(PRODUCE, 9, acks=-1, timeout_ms=30_000, topic_data=topics)
            row = answer["responses"][0]["partition_responses"][0]
            if row["error_code"] in (0, _DUPLICATE):
                break
            book.event("refused", layout, number, row["error_code"])
            if row["error_code"] in _REFUSED_FOR_GOOD:
                return
            time.sleep(PAUSE)
        for at, each in enumerate(numbers):
            # Only in dense layouts are the offsets of a batch told by its first.
            known_offset = row["base_offset"] + at if row["error_code"] == 0 and (layout != "entries" or not at) else -1
            book.event("acked", layout, each, known_offset)
            produced[layout] = max(known_offset, produced.get(layout, -1))
        number = numbers.stop
        time.sleep(PAUSE)


def fetch(port: int, book: Book, layout: str) -> None:
    """A consumer at the end of the log."""
    caller = Caller(port, book, f"fetch.{layout}")
    topic = f"{STEADY}.{layout}"
    asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}]
    offset = caller.ask(LIST_OFFSETS, 7, replica_id=-1, topics=asked)["topics"][0]["partitions"][0]["offset"]
    while True:
        rows = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
        limits = {"max_wait_ms": int(POLL * 1000), "min_bytes": 1, "max_bytes": 1 << 20}
        answer = caller.ask(FETCH, 12, asked=POLL, topics=[{"topic": topic, "partitions": rows}], **limits)
        row = answer["responses"][0]["partitions"][0]
        if row["error_code"]:
            book.event("unread", layout, offset, row["error_code"])
            time.sleep(PAUSE)
        for at, value in read_rows(row["records"] or b""):
            if at >= offset:
                book.event("read", layout, at, value.decode())
                offset = at + 1
        reached[layout] = offset
        time.sleep(PAUSE)


def echo(port: int, book: Book, _: str) -> None:
    """How long the machine itself keeps somebody waiting who asks a server for nothing."""
    line = Line(port)
    request = encode(API_VERSIONS, 0)
    while True:
        start = time.monotonic()
        line.send(request)
        line.receive()
        book.wait("echo", start, time.monotonic() - start)
        time.sleep(PAUSE / 2)


def flush(_: int, book: Book, directory: str) -> None:
    """How long the disk takes for a small file."""
    file = os.open(Path(directory) / "probe", os.O_WRONLY | os.O_CREAT)
    while True:
        start = time.monotonic()
        os.pwrite(file, b"x", 0)
        os.fdatasync(file)
        book.wait("flush", start, time.monotonic() - start)
        time.sleep(FLUSHES)


def queue(pid: int, book: Book, _: str) -> None:
    """How long the broker's loop waited for a processor."""
    path = Path(f"/proc/{pid}/task/{pid}/schedstat")
    before, start = 0, time.monotonic()
    while path.exists():
        waited, now = int(path.read_text().split()[1]), time.monotonic()
        if before and waited - before > QUEUED:
            book.wait("queue", start, (waited - before) / 1e9)
        before, start = waited, now
        time.sleep(PAUSE)


def steal(_: int, book: Book, __: str) -> None:
    """How long other virtual machines had a processor that this one wanted (`steal` in proc_stat(5))."""
    before = _read_stolen()
    while True:
        time.sleep(PAUSE)
        stolen, now = _read_stolen(), time.monotonic()
        if seconds := max(after - earlier for after, earlier in zip(stolen, before, strict=True)) / TICKS:
            book.wait("steal", now - seconds, seconds)
        before = stolen


def _read_stolen() -> list[int]:
    """Of each processor, in ticks."""
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    return [int(row[_STOLEN]) for row in rows if row[0].startswith("cpu") and row[0] != "cpu"]


def main() -> None:
    given = json.loads(sys.argv[1])
    book = Book(Path(given["waits"]), Path(given["history"]))
    works: list[tuple[Callable[[int, Book, str], None], int, str]] = [(echo, given["echo"], "")]
    works += [(queue, given["pid"], ""), (steal, 0, "")]
    if given["directory"]:
        works.append((flush, 0, given["directory"]))
    works.append((ping, given["port"], given["layouts"][0]))
    for layout in given["layouts"]:
        works += [(produce, given["port"], layout), (fetch, given["port"], layout)]
    threads = [threading.Thread(target=work, args=(port, book, about), daemon=True) for work, port, about in works]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    until = time.monotonic() + CATCH_UP
    for thread in (each for each, (work, *_) in zip(threads, works, strict=True) if work is produce):
        thread.join(max(until - time.monotonic(), 0.0))
    while any(reached.get(layout, -1) <= last for layout, last in list(produced.items())) and time.monotonic() < until:
        time.sleep(PAUSE)
    os._exit(0)


if __name__ == "__main__":
    main()
