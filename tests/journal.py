"""What the clients of one run sent and saw, noted while it happens by any number of threads."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from group_history import Answer

PartitionOffset = tuple[int, int]  # partition, offset


class Sent(NamedTuple):
    """Values are `producer:number`, so every one is unique and says its place in its producer's order."""

    producer: str
    number: int


class Mark(NamedTuple):
    """A high watermark that a reader was told, and how many records it had read by then."""

    partition: int
    offset: int
    seen: int


class Commit(NamedTuple):
    """A member asked to commit an offset of a partition; `seen`: how many records it had read when it asked."""

    member: str
    partition: int
    offset: int
    seen: int
    answer: Answer


class Position(NamedTuple):
    """What a group was told to have committed of a partition; -1 is nothing."""

    partition: int
    offset: int
    answer: Answer


def read_value(value: bytes) -> Sent:
    """The producer and its number; raises `ValueError` for what no producer here wrote."""
    producer, number = value.decode().split(":")
    return Sent(producer, int(number))


class Journal:
    """Of one topic. Nothing is judged here. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.sent: dict[Sent, int] = {}  # -> partition
        self.acknowledged: dict[Sent, PartitionOffset] = {}
        self.acknowledged_again: list[tuple[Sent, PartitionOffset]] = []
        self.refused: dict[Sent, str] = {}
        self.read: dict[str, list[tuple[PartitionOffset, Sent]]] = defaultdict(list)  # by reader, as it came
        self.once: set[str] = set()  # idempotent producers
        self.marks: dict[str, list[Mark]] = defaultdict(list)  # by reader, as they came
        self.answers: list[Answer] = []  # of coordinators to joins and heartbeats
        self.commits: list[Commit] = []
        self.positions: list[Position] = []
        self.longest_wait = 0.0  # seconds in which a partition was written to, and acknowledged nothing
        self._waiting: dict[int, float] = {}  # partition -> the first time it was written to since its last one

    def note_sent(self, value: Sent, partition: int, *, once: bool) -> None:
        with self._lock:
            assert value not in self.sent
            self.sent[value] = partition
            self._note_wait(self._waiting.setdefault(partition, self._clock()))
            if once:
                self.once.add(value.producer)

    def note_acknowledged(self, value: Sent, place: PartitionOffset) -> None:
        """The offset is -1 where the answer named none."""
        with self._lock:
            if (since := self._waiting.pop(place[0], None)) is not None:
                self._note_wait(since)
            if value in self.acknowledged:
                self.acknowledged_again.append((value, place))
            else:
                self.acknowledged[value] = place

    def _note_wait(self, since: float) -> None:
        self.longest_wait = max(self.longest_wait, self._clock() - since)

    def note_refused(self, value: Sent, error: str) -> None:
        with self._lock:
            self.refused[value] = error

    def note_read(self, reader: str, place: PartitionOffset, value: bytes) -> None:
        with self._lock:
            self.read[reader].append((place, read_value(value)))

    def note_high_watermark(self, reader: str, partition: int, offset: int) -> None:
        """When the records of the same answer are noted."""
        with self._lock:
            self.marks[reader].append(Mark(partition, offset, len(self.read[reader])))

    def count_read(self, reader: str) -> int:
        """How many records it has read; to be asked before a commit is sent."""
        with self._lock:
            return len(self.read[reader])

    def note_answer(self, answer: Answer) -> None:
        """To a join or a heartbeat of a group's member."""
        with self._lock:
            self.answers.append(answer)

    def note_commit(self, member: str, place: PartitionOffset, seen: int, answer: Answer) -> None:
        """`seen` is from `count_read`; `member` is the reader's name."""
        with self._lock:
            self.commits.append(Commit(member, *place, seen, answer))

    def note_position(self, place: PartitionOffset, answer: Answer) -> None:
        """A group's committed offset, as it was fetched."""
        with self._lock:
            self.positions.append(Position(*place, answer))

    def last_acknowledged(self) -> dict[int, int]:
        """Partition -> the highest offset acknowledged."""
        last: dict[int, int] = {}
        with self._lock:
            for partition, offset in self.acknowledged.values():
                last[partition] = max(offset, last.get(partition, -1))
        return last
