"""From waits to figures: which of them are the broker's, and which the machine's."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROBES = ("echo", "flush", "queue", "steal")
SHORT = 0.005  # seconds that a server or a disk may take at any time


class Wait(NamedTuple):
    """One request of a client, or of a probe. Monotonic seconds."""

    start: float
    seconds: float


class Longest(NamedTuple):
    """Seconds: the longest wait that was the broker's, and how many above the bound were the machine's."""

    counted: float
    excused: int


class Waits:
    """The watcher's file, read on as it grows: role -> waits in the order of their ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.by_role: dict[str, list[Wait]] = defaultdict(list)

    def read(self) -> None:
        """The bytes written since."""
        with self._path.open() as file:
            file.seek(self._at)
            while (line := file.readline()).endswith("\n"):
                role, start, seconds = line.split()
                self.by_role[role].append(Wait(float(start), float(seconds)))
                self._at = file.tell()

    def roles(self) -> list[str]:
        """The roles of the well-behaved clients."""
        return [role for role in self.by_role if role not in PROBES]

    def asked_since(self, moment: float) -> bool:
        """Whether every client has begun and ended a request since then."""
        return all(self.by_role[role][-1].start >= moment for role in self.roles())

    def longest(self, role: str, since: float, until: float, bound: float) -> Longest:
        """The waits of requests under way between the two moments.

        A wait is the machine's if a probe waited in the same instant for half of it, and without that it would be
        within the bound. A produce may wait for the disk, so the disk's probe counts for it too.
        """
        during = [wait for wait in self.by_role[role] if wait.start + wait.seconds >= since and wait.start < until]
        probes = [self._slow("echo"), self.by_role.get("queue", []), self.by_role.get("steal", [])]
        probes += [self._slow("flush")] * role.startswith(("produce", "fetch"))
        counted, excused = 0.0, 0
        for wait in during:
            alien = max(overlap(wait, probe) for probe in probes) if wait.seconds > bound / 4 else 0.0
            if 2 * alien >= wait.seconds > 2 * SHORT and wait.seconds - alien <= bound:
                excused += wait.seconds > bound
            else:
                counted = max(counted, wait.seconds)
        return Longest(counted, excused)

    def _slow(self, role: str) -> list[Wait]:
        return [wait for wait in self.by_role.get(role, []) if wait.seconds > SHORT]


def overlap(wait: Wait, probe: Sequence[Wait]) -> float:
    """Seconds of `wait` during which the probe waited too."""
    end = wait.start + wait.seconds
    total = 0.0
    first = max(bisect_left(probe, wait.start, key=lambda each: each.start) - 1, 0)
    for each in probe[first:]:
        if each.start >= end:
            break
        total += max(min(end, each.start + each.seconds) - max(wait.start, each.start), 0.0)
    return total
