"""The rules of a history, each by its name: what is broken comes out as sentences."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from commit_rules import COMMIT_RULES
from journal import Journal, PartitionOffset, Sent

Final = Mapping[int, list[tuple[int, Sent]]]  # partition -> what is there at the end, in log order
Broken = Iterator[str]


class Evidence(NamedTuple):
    """A run, and what is there at the end. `told`: places reported as lost; the rest is as in `History.check`."""

    run: Journal
    final: Final
    told: set[PartitionOffset]
    never: bool

    def places(self) -> Iterator[tuple[PartitionOffset, Sent]]:
        """All that is there."""
        for partition, rows in self.final.items():
            for offset, value in rows:
                yield (partition, offset), value

    def find_lost(self) -> set[Sent]:
        """What was acknowledged and is nowhere."""
        return self.run.acknowledged.keys() - {value for _, value in self.places()}


def find_losses(evidence: Evidence) -> Broken:
    """What was acknowledged is there, or its place was reported."""
    for value in sorted(evidence.find_lost()):
        place = evidence.run.acknowledged[value]
        if place not in evidence.told:
            yield f"{value}, acknowledged at {place}, is lost"


def find_false_reports(evidence: Evidence) -> Broken:
    """What was reported as lost is, and was there: the last place of a report is one of a record."""
    for place, value in evidence.places():
        if place in evidence.told:
            yield f"{place} was reported as lost, and {value} is there"
    claimed = {place for claims in evidence.run.read.values() for place, _ in claims}
    claimed |= set(evidence.run.acknowledged.values())
    for partition, offset in sorted(evidence.told):
        if (partition, offset + 1) not in evidence.told and (partition, offset) not in claimed:
            yield f"{(partition, offset)} was reported as lost, and nobody was told of a record there"


def find_vanished(evidence: Evidence) -> Broken:
    """What somebody read stays, acknowledged or not (that of `find_losses` is not said again)."""
    there = {place for place, _ in evidence.places()}
    lost = {evidence.run.acknowledged[value] for value in evidence.find_lost()}
    for reader, claims in evidence.run.read.items():
        for place, value in claims:
            if place not in there and place not in evidence.told and place not in lost:
                yield f"{reader} read {value} at {place}, where nothing is now"


def find_doubles(evidence: Evidence) -> Broken:
    """An idempotent producer's records are there once in what readers may see."""
    for partition, rows in evidence.final.items():
        for value, offsets in _group(rows).items():
            if len(offsets) > 1 and value.producer in evidence.run.once:
                yield f"{value} stands at {sorted(offsets)} of partition {partition}"


def find_moved(evidence: Evidence) -> Broken:
    """What was acknowledged at a place stands there."""
    for partition, rows in evidence.final.items():
        for value, offsets in _group(rows).items():
            place = evidence.run.acknowledged.get(value, (partition, -1))
            if place[1] >= 0 and place[1] not in offsets and place not in evidence.told:
                yield f"{value}, acknowledged at {place}, stands at {sorted(offsets)} of partition {partition}"


def find_strays(evidence: Evidence) -> Broken:
    """Everything that is there, or was read, was sent there."""
    sent = evidence.run.sent
    for (partition, _), value in evidence.places():
        if sent.get(value) != partition:
            yield f"{value} stands in partition {partition}, where nobody sent it"
    for reader, claims in evidence.run.read.items():
        for place, value in claims:
            if sent.get(value) != place[0]:
                yield f"{reader} read {value} at {place}, where nobody sent it"


def find_refused(evidence: Evidence) -> Broken:
    """What was refused for good is not there."""
    if evidence.never:
        for value in evidence.run.refused.keys() & {value for _, value in evidence.places()}:
            yield f"{value} was refused ({evidence.run.refused[value]}) and is there"


def find_contradictions(evidence: Evidence) -> Broken:
    """A record has one answer, and it names the partition that the record was sent to."""
    run = evidence.run
    for value, place in run.acknowledged_again:
        if place != run.acknowledged[value]:
            yield f"{value} was acknowledged at {run.acknowledged[value]}, and then at {place}"
    for value, (partition, offset) in run.acknowledged.items():
        if run.sent.get(value) != partition:
            yield f"{value} was acknowledged at {(partition, offset)}, where nobody sent it"
        if value in run.refused:
            yield f"{value} was acknowledged at {(partition, offset)} and refused ({run.refused[value]})"


def find_disorder(evidence: Evidence) -> Broken:
    """Offsets rise, and so do the numbers of idempotent producers, in the log and by what they were told.

    Others may overtake themselves: librdkafka with one request in flight has the next one ready when the first
    is answered with an error, and sends it before the retry.
    """
    for partition, rows in evidence.final.items():
        if not rises(offset for offset, _ in rows):
            yield f"the offsets of partition {partition} do not rise"
        for producer in evidence.run.once:
            numbers = [value.number for _, value in rows if value.producer == producer]
            for first, second in pairwise(dict.fromkeys(numbers)):
                if second < first:
                    yield f"{producer}:{second} comes behind {producer}:{first} in partition {partition}"
    told: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for value, (partition, offset) in evidence.run.acknowledged.items():
        if offset >= 0 and value.producer in evidence.run.once:
            told[value.producer, partition].append((value.number, offset))
    for (producer, partition), pairs in told.items():
        for (_, earlier), (number, offset) in pairwise(sorted(pairs)):
            if offset < earlier:
                yield f"{producer}:{number} was acknowledged at {(partition, offset)}, after one at {earlier}"


def find_reused(evidence: Evidence) -> Broken:
    """No offset stands for two payloads: not in acknowledgements, nor in what anybody ever read."""
    said: dict[PartitionOffset, Sent] = {}
    claims = [(place, value) for value, place in evidence.run.acknowledged.items() if place[1] >= 0]
    claims += [claim for rows in evidence.run.read.values() for claim in rows]
    for place, value in [*claims, *evidence.places()]:
        if said.setdefault(place, value) != value:
            yield f"{place} was {said[place]} and is {value}"


def find_returns(evidence: Evidence) -> Broken:
    """A reader sees rising offsets."""
    for reader, claims in evidence.run.read.items():
        for partition in {partition for (partition, _), _ in claims}:
            if not rises(offset for (where, offset), _ in claims if where == partition):
                yield f"{reader} went back in partition {partition}"


def find_skipped(evidence: Evidence) -> Broken:
    """A reader skips nothing that is there between its first and its last."""
    for reader, claims in evidence.run.read.items():
        for partition, rows in evidence.final.items():
            seen = {offset for (where, offset), _ in claims if where == partition}
            if not seen:
                continue
            first, last = min(seen), max(seen)
            skipped = [
                value
                for offset, value in rows
                if first <= offset <= last and offset not in seen and (partition, offset) not in evidence.told
            ]
            if skipped:
                yield f"{reader} did not see {skipped[:3]} ({len(skipped)}) of partition {partition}"


def find_low_watermarks(evidence: Evidence) -> Broken:
    """A reader's high watermark falls only over what was reported as lost, and is above all that it has read."""
    for reader, marks in evidence.run.marks.items():
        highest: dict[int, int] = {}
        claims = evidence.run.read[reader]
        for mark in marks:
            high = highest.get(mark.partition, mark.offset)
            if mark.offset < high and (mark.partition, mark.offset) not in evidence.told:
                yield f"{reader} was told {high} of partition {mark.partition}, and then {mark.offset}"
            highest[mark.partition] = max(high, mark.offset)
        for partition, high in highest.items():
            seen = max(mark.seen for mark in marks if mark.partition == partition)
            above = [place for place, _ in claims[:seen] if place[0] == partition and place[1] >= high]
            if above:
                yield f"{reader} read {above[-1]}, and was told no high watermark above {high}"


def _of_commits(rule: Callable[[Journal], Broken], evidence: Evidence) -> Broken:
    return rule(evidence.run)


RULES: dict[str, Callable[[Evidence], Broken]] = {
    "lost": find_losses,
    "reported and not lost": find_false_reports,
    "vanished": find_vanished,
    "doubled": find_doubles,
    "moved": find_moved,
    "stray": find_strays,
    "refused and there": find_refused,
    "contradiction": find_contradictions,
    "out of order": find_disorder,
    "reused": find_reused,
    "went back": find_returns,
    "skipped": find_skipped,
    "high watermark": find_low_watermarks,
    **{name: partial(_of_commits, rule) for name, rule in COMMIT_RULES.items()},
}


def _group(rows: list[tuple[int, Sent]]) -> dict[Sent, set[int]]:
    places: defaultdict[Sent, set[int]] = defaultdict(set)
    for offset, value in rows:
        places[value].add(offset)
    return places


def rises(numbers: Iterable[int]) -> bool:
    """Whether each is above the one before."""
    return all(first < second for first, second in pairwise(numbers))
