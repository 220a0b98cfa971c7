"""Every native call and every request in instructions, which no other work on the machine disturbs."""

from pathlib import Path

from suites.codec import CALLS
from suites.requests import NAMES

import korvet_fast
from benchmarks.check import REPEATS
from benchmarks.check.count import count


def setup_cache() -> dict[str, float]:
    """Once for each commit: all of them, in one run of callgrind."""
    return count(Path(korvet_fast.__file__).parents[1])


setup_cache.timeout = 600  # type: ignore[attr-defined]


class Calls:
    """`records` of 100 bytes, or as many frames, partitions, commands or replies."""

    params = (CALLS, list(REPEATS))
    param_names = ("call", "records")

    def track_instructions(self, counts: dict[str, float], call: str, records: int) -> float:
        return counts[f"{call}, {records:,}"]

    track_instructions.unit = "instructions"  # type: ignore[attr-defined]


class Requests:
    """One request in flight, over a store that discards."""

    params = NAMES
    param_names = ("request",)

    def track_instructions(self, counts: dict[str, float], request: str) -> float:
        return counts[request]

    track_instructions.unit = "instructions"  # type: ignore[attr-defined]
