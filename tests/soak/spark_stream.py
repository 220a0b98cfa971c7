"""Spark in a soak: a stream reads a topic into files, and another one into a second topic.

Each goes on from its checkpoint whenever it has ended.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.peers.spark.session import Session, SparkError
from client_thread import ClientThread
from compat.spark.topics import load

_BETWEEN = 1.0  # seconds between two queries

Read = tuple[int, int, bytes]  # partition, offset, value
Log = Mapping[int, list[tuple[int, bytes]]]  # partition -> (offset, value)


class SparkStream(ClientThread):
    """Queries one after the other: each reads to what is the end then, into Parquet files or into the topic `copy`.

    `queries`: how many ended well. `failures`: what ended the others. `deaths`: of drivers, by `kill`.
    """

    def __init__(self, bootstrap: str, topic: str, copy: str, place: Path) -> None:
        super().__init__("spark")
        self.queries, self.deaths = 0, 0
        self.failures: list[str] = []
        self._rows, self._local = place / "rows", place / "local"
        address = {"kafka.bootstrap.servers": bootstrap}
        options = {**address, "subscribe": topic, "startingOffsets": "earliest"}
        source = {"format": "korvet", "options": options, "select": ["partition", "offset", "value"]}
        sinks = {
            "files": {"format": "parquet", "path": str(self._rows)},
            "topic": {"format": "korvet", "options": {**address, "topic": copy}},
        }
        self._requests = [
            {"source": source, "sink": sink, "checkpoint": str(place / f"checkpoint-{name}")}
            for name, sink in sinks.items()
        ]
        self._session: Session | None = None
        self._well: Session | None = None  # the last one in which both queries have ended well

    def work(self) -> None:
        try:
            while not self.enough.wait(_BETWEEN):
                try:
                    self._read_on()
                except SparkError as error:
                    self.failures.append(str(error))
            self._read_on()  # all faults are over now
        finally:
            if self._session is not None:
                self._session.close()

    def _read_on(self) -> None:
        """Both queries to the end. Raises `SparkError` if one or its driver has ended badly."""
        session = self._session
        if session is None or not _find_family(session):
            self._session = session = self._start_driver()
        try:
            for request in self._requests:
                session.ask("stream", **request)
                self.queries += 1
            self._well = session
        except (OSError, ValueError) as error:  # it has died before it was asked
            raise SparkError(f"the driver is gone: {error}") from error

    def _start_driver(self) -> Session:
        """On one core, and compiled in haste: it lives for a minute, beside brokers that want the processors too."""
        return Session(
            Path(sys.executable),
            korvet=True,
            master="local[1]",
            conf={
                "spark.local.dir": str(self._local),
                "spark.driver.memory": "512m",
                "spark.ui.showConsoleProgress": "false",
            },
            environment={"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )

    @property
    def is_well(self) -> bool:
        """Whether both queries have ended well in the driver that lives: one that is killed before gets nowhere.

        Spark goes on from no checkpoint of which it was killed while it wrote the first offsets
        (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY).
        """
        return bool(_find_family(self._well))

    def kill(self) -> None:
        """kill -9 to the driver, its JVM and its workers."""
        family = _find_family(self._well)
        for process in family:
            with suppress(psutil.NoSuchProcess):  # it went with the one before
                process.kill()
        psutil.wait_procs(family, 20)
        self.deaths += 1

    def check(self, log: Log) -> int:
        """How many rows it has: each record of the log once. Raises `AssertionError` for any other."""
        table = load(self._rows)
        rows = list(zip(*(table[name].to_pylist() for name in ("partition", "offset", "value")), strict=True))
        broken = find_wrong(rows, log)
        assert not broken, f"what Spark has read is wrong in {len(broken)} places:\n" + "\n".join(broken[:20])
        return len(rows)

    def check_copy(self, log: Log, copy: Log) -> int:
        """How many records the topic has too many: none unless a query has ended badly. Raises `AssertionError`."""
        broken = find_uncopied(log, copy)
        assert not broken, f"what Spark has written is wrong in {len(broken)} places:\n" + "\n".join(broken[:20])
        doubled = sum(map(len, copy.values())) - sum(map(len, log.values()))
        assert not doubled or self.failures, f"{doubled} records were written twice, and no query has ended badly"
        return doubled


def find_wrong(rows: Iterable[Read], log: Log) -> list[str]:
    """In sentences, what is missing among these rows, twice, or not in the log."""
    found = Counter(rows)
    there = {(partition, offset, value) for partition, rows in log.items() for offset, value in rows}
    broken = [f"{row} is not there" for row in sorted(there - found.keys())]
    broken += [f"{row} is in no log" for row in sorted(found.keys() - there)]
    return broken + [f"{row} is there {times} times" for row, times in sorted(found.items()) if times > 1]


def find_uncopied(log: Log, copy: Log) -> list[str]:
    """In sentences, what is less often in the copy than in the log, or in no log. Offsets may differ."""
    there, found = (Counter((index, value) for index in each for _, value in each[index]) for each in (log, copy))
    few = [row for row in sorted(there) if found[row] < there[row]]
    broken = [f"{row} is there {found[row]} times, not {there[row]}" for row in few]
    return broken + [f"{row} is in no log" for row in sorted(found.keys() - there.keys())]


def _find_family(session: Session | None) -> list[psutil.Process]:
    """The processes of a driver that lives."""
    with suppress(psutil.NoSuchProcess):  # it dies while it is looked at
        return session.family() if session is not None else []
    return []
