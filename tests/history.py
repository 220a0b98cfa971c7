"""The history of producers and consumers, and the rules that no fault may break."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

PartitionOffset = tuple[int, int]  # partition, offset


class Sent(NamedTuple):
    """Values are `producer:number`, so every one is unique and says its place in its producer's order."""

    producer: str
    number: int


Final = Mapping[int, list[tuple[int, Sent]]]  # partition -> what is there at the end, in log order


def read_value(value: bytes) -> Sent:
    """The producer and its number; raises `ValueError` for what no producer here wrote."""
    producer, number = value.decode().split(":")
    return Sent(producer, int(number))


class History:
    """One run against one topic, written to by any number of threads and checked at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: dict[Sent, int] = {}  # -> partition
        self.acknowledged: dict[Sent, PartitionOffset] = {}
        self.refused: dict[Sent, str] = {}
        self.read: dict[str, list[tuple[PartitionOffset, Sent]]] = defaultdict(
            list
        )  # by consumer, in the order it came
        self.once: set[str] = set()  # idempotent producers

    def note_sent(self, value: Sent, partition: int, *, once: bool) -> None:
        with self._lock:
            assert value not in self.sent
            self.sent[value] = partition
            if once:
                self.once.add(value.producer)

    def note_acknowledged(self, value: Sent, place: PartitionOffset) -> None:
        with self._lock:
            self.acknowledged[value] = place

    def note_refused(self, value: Sent, error: str) -> None:
        with self._lock:
            self.refused[value] = error

    def note_read(self, consumer: str, place: PartitionOffset, value: bytes) -> None:
        with self._lock:
            self.read[consumer].append((place, read_value(value)))

    def last_acknowledged(self) -> dict[int, int]:
        """Partition -> the highest offset acknowledged."""
        last: dict[int, int] = {}
        with self._lock:
            for partition, offset in self.acknowledged.values():
                last[partition] = max(offset, last.get(partition, -1))
        return last

    def check(
        self,
        log: Mapping[int, list[tuple[int, bytes]]],
        *,
        may_lose: Iterable[PartitionOffset] = (),
        never: bool = False,
    ) -> set[Sent]:
        """Hold the run against what the topic holds at the end: partition -> (offset, value), rising.

        `may_lose`: places that the broker has reported as lost; elsewhere everything acknowledged must be there. What
        was there may come back when a former master is one again, and a copy of it may stand elsewhere: one that was
        sent before, and of which the broker could not say what became of it.
        `never`: what was refused must not be there (only where the refusal was definite).
        Returns the acknowledged values that are gone. Raises `AssertionError` with every rule that was broken.
        """
        final = {partition: [(offset, read_value(value)) for offset, value in rows] for partition, rows in log.items()}
        there = {value for rows in final.values() for _, value in rows}
        lost = self.acknowledged.keys() - there
        told = set(may_lose)
        broken = [
            *(
                f"{value}, acknowledged at {self.acknowledged[value]}, is lost"
                for value in sorted(lost)
                if self.acknowledged[value] not in told
            ),
            *(
                f"{value} was refused ({self.refused[value]}) and is there"
                for value in self.refused.keys() & there
                if never
            ),
            *self._misplaced(final, told),
            *self._out_of_order(final),
            *self._reused(final),
            *self._misread(final, told),
        ]
        assert not broken, f"{len(broken)} rules broken:\n" + "\n".join(broken[:20])
        return lost

    def _misplaced(self, final: Final, may_lose: set[PartitionOffset]) -> Iterable[str]:
        """Everything stands where it was sent and where its producer was told; idempotent producers' records once."""
        for partition, rows in final.items():
            places: dict[Sent, set[int]] = defaultdict(set)
            for offset, value in rows:
                places[value].add(offset)
            for value, offsets in places.items():
                if self.sent.get(value) != partition:
                    yield f"{value} stands in partition {partition}, where nobody sent it"
                if len(offsets) > 1 and value.producer in self.once:
                    yield f"{value} stands at {sorted(offsets)} of partition {partition}"
                told = self.acknowledged.get(value, (partition, -1))
                if told[1] >= 0 and told[1] not in offsets and told not in may_lose:
                    yield f"{value}, acknowledged at {told}, stands at {sorted(offsets)} of partition {partition}"

    def _out_of_order(self, final: Final) -> Iterable[str]:
        """Offsets rise, and so do the numbers of idempotent producers.

        Others may overtake themselves: librdkafka with one request in flight has the next one ready when the first
        is answered with an error, and sends it before the retry.
        """
        for partition, rows in final.items():
            if not rises(offset for offset, _ in rows):
                yield f"the offsets of partition {partition} do not rise"
            for producer in self.once:
                numbers = [value.number for _, value in rows if value.producer == producer]
                for before, after in pairwise(dict.fromkeys(numbers)):
                    if after < before:
                        yield f"{producer}:{after} comes behind {producer}:{before} in partition {partition}"

    def _reused(self, final: Final) -> Iterable[str]:
        """No offset stands for two payloads: not in acknowledgements, nor in what anybody ever read."""
        said: dict[PartitionOffset, Sent] = {}
        claims = [(place, value) for value, place in self.acknowledged.items() if place[1] >= 0]
        claims += [claim for rows in self.read.values() for claim in rows]
        claims += [((partition, offset), value) for partition, rows in final.items() for offset, value in rows]
        for place, value in claims:
            if said.setdefault(place, value) != value:
                yield f"{place} was {said[place]} and is {value}"

    def _misread(self, final: Final, may_lose: set[PartitionOffset]) -> Iterable[str]:
        """A consumer sees rising offsets and skips nothing that is there between its first and its last."""
        for consumer, claims in self.read.items():
            for partition, rows in final.items():
                seen = [offset for (where, offset), _ in claims if where == partition]
                if not rises(seen):
                    yield f"{consumer} went back in partition {partition}"
                known = set(seen)
                skipped = [
                    value
                    for offset, value in rows
                    if seen
                    and seen[0] <= offset <= seen[-1]
                    and offset not in known
                    and (partition, offset) not in may_lose
                ]
                if skipped:
                    yield f"{consumer} did not see {skipped[:3]} ({len(skipped)}) of partition {partition}"


def rises(numbers: Iterable[int]) -> bool:
    """Whether each is above the one before."""
    return all(before < after for before, after in pairwise(numbers))
