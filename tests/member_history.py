"""The reports of a scene's members: who had which partition when, and what it read and committed."""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compat.group_scene import MemberProcess, Scene

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
    commits no more than it read; and what was committed is never taken back. `expired`: members that may have been
    taken for dead while they lived: what they believed to have meanwhile was somebody else's.
    """
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
    broken += _miscommitted(stays)
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


def _miscommitted(stays: list[Stay]) -> Iterable[str]:
    for stay in stays:
        if not stay.reads:
            continue
        for at, offset in stay.commits:
            position = 1 + max((read for when, read in stay.reads if when <= at), default=-1)
            if offset > position > 0:
                yield f"{stay.member} has committed {offset} of {stay.partition}, having read up to {position}"
        if [offset for _, offset in stay.commits] != sorted(offset for _, offset in stay.commits):
            yield f"{stay.member} goes back in its commits of {stay.partition}"
