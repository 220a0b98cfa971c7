"""The reports of a scene's members: who had which partition when, and what it read and committed."""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from commit_rules import COMMIT_RULES
from compat.group_scene import MemberProcess, Scene
from counts import note
from group_history import Answer
from journal import Journal

EVER = float("inf")


@dataclass
class Stay:
    """The time in which a member had a partition, by its own words; what it read and committed then, and when."""

    member: str
    partition: int
    begun: float
    ended: float = EVER
    reads: list[tuple[float, int]] = field(default_factory=list)
    commits: list[tuple[float, int]] = field(default_factory=list)


def check_members(scene: Scene, *, expired: Sequence[MemberProcess] = ()) -> None:
    """Hold what the members told against G1, G3 and G4 of a group: raises AssertionError with what was broken.

    No partition has two owners at a time; a member reads only what it has, without a gap, from where the group was; it
    commits no more than it read, or than the group had committed, and nothing in a generation that is over (which
    kafka-python and aiokafka tell); what was committed is never taken back, nor forgotten. `expired`: members that may
    have been taken for dead while they lived: what they believed to have meanwhile was somebody else's.
    """
    read = {tuple(line["read"]) for one in scene.members for line in list(one.said) if "read" in line}
    note(acknowledged=len(scene.sent), lost=len(scene.sent - read))
    broken: list[str] = []
    stays: list[Stay] = []
    for number, one in enumerate(scene.members):
        stays += _find_stays(one, f"{number} ({one.client})", broken)
    late = {f"{number} ({one.client})" for number, one in enumerate(scene.members) if one in expired}
    broken += _shared([stay for stay in stays if stay.member not in late])
    sent: defaultdict[int, list[int]] = defaultdict(list)
    for partition, offset in sorted(scene.sent):
        sent[partition].append(offset)
    broken += _misread(stays, sent)
    journal = _journal(scene)
    broken += [f"{rule}: {words}" for rule, check in COMMIT_RULES.items() for words in check(journal)]
    assert not broken, f"{len(broken)} rules broken:\n" + "\n".join([*broken[:20], scene.explain()])


def _find_stays(one: MemberProcess, name: str, broken: list[str]) -> list[Stay]:
    found: list[Stay] = []
    owned: dict[int, Stay] = {}
    for at, line in zip(
        one.times, list(one.said), strict=False
    ):  # it may be saying something now: its time comes first
        for partition in line.get("assigned", ()):
            if partition not in owned:
                owned[partition] = Stay(name, partition, at)
                found.append(owned[partition])
        for partition in line.get("revoked", ()):
            if partition in owned:
                owned.pop(partition).ended = at
        if "read" in line:
            partition, offset = line["read"]
            if partition in owned:
                owned[partition].reads.append((at, offset))
            else:
                broken.append(f"{name} reads {offset} of {partition}, which it does not have")
        for key, offset in line.get("committed", {}).items():
            if int(key) in owned:
                owned[int(key)].commits.append((at, offset))
            else:
                broken.append(f"{name} commits {offset} of {key}, which it does not have")
    for stay in owned.values():
        stay.ended = one.ended_at
    return found


def _shared(stays: list[Stay]) -> Iterable[str]:
    for one, other in pairwise(sorted(stays, key=lambda stay: (stay.partition, stay.begun))):
        if one.partition == other.partition and other.begun < one.ended:
            yield f"{one.partition} is given to {other.member} while {one.member} has it"


def _misread(stays: list[Stay], sent: dict[int, list[int]]) -> Iterable[str]:
    """In a stay what was sent is read in order; before it, it had been read by somebody, and it goes on behind the
    commits that were answered.
    """
    first_read: dict[tuple[int, int], float] = {}
    for stay in stays:
        for at, offset in stay.reads:
            key = stay.partition, offset
            first_read[key] = min(at, first_read.get(key, EVER))
    for stay in stays:
        if not stay.reads:
            continue
        known = sent[stay.partition]
        offsets = [offset for _, offset in stay.reads]
        start = bisect.bisect_left(known, offsets[0])
        if offsets != known[start : start + len(offsets)]:
            yield f"{stay.member} reads {stay.partition} out of order, or with gaps: {offsets}"
        begun = stay.reads[0][0]
        for offset in known[:start]:
            if first_read.get((stay.partition, offset), EVER) > begun:
                yield f"{stay.member} begins {stay.partition} at {offsets[0]}, and nobody has read {offset}"
        behind = [
            offset
            for each in stays
            for at, offset in each.commits
            if each.partition == stay.partition and at < stay.begun and offset > offsets[0]
        ]
        if behind:
            yield f"{stay.member} begins {stay.partition} at {offsets[0]}, but {max(behind)} was committed"


def _journal(scene: Scene) -> Journal:
    """What the members committed, and what the group was told to have committed."""
    journal = Journal()
    for number, one in enumerate(scene.members):
        _note_commits(journal, scene.group, one, f"{number} ({one.client})")
    for begun, received, positions in scene.positions:
        for place in positions.items():
            journal.note_position(place, Answer(scene.group, "", "fetch", begun, received))
    return journal


def _note_commits(journal: Journal, group: str, one: MemberProcess, name: str) -> None:
    """A commit began after the line before it about its partition.

    Of one that was refused, or of which the member did not live to tell, nobody knows: it may have been stored, up to
    what the member had read.
    """
    read: dict[int, int] = {}  # partition -> the offset after the last
    heard: defaultdict[int, float] = defaultdict(float)  # partition -> when it told something of it

    def add(offsets: dict[int, int], at: float, error: str = "", generation: int = -1) -> None:
        for partition, offset in offsets.items():
            answer = Answer(group, "", "commit", math.nextafter(heard[partition], EVER), at, error, generation)
            journal.note_commit(name, (partition, offset), journal.count_read(name), answer)

    for at, line in zip(one.times, list(one.said), strict=False):
        committed = {int(partition): offset for partition, offset in line.get("committed", {}).items()}
        add(committed, at, generation=line.get("generation", -1))
        if "refused" in line:
            add(read, at, "REQUEST_TIMED_OUT")
        if "read" in line:
            partition, offset = line["read"]
            journal.note_read(name, (partition, offset), b"scene:%d" % offset)
            read[partition] = offset + 1
            heard[partition] = at
        heard |= dict.fromkeys([*committed, *line.get("assigned", ())], at)
    add(read, one.ended_at, "REQUEST_TIMED_OUT")
