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


def _skip_missing(counts: dict[str, float], name: str) -> None:
    if name not in counts:
        raise NotImplementedError(f"the commit does not have {name} yet")  # asv goes on with the next


class Calls:
    """`records` of 100 bytes, or as many frames, partitions, commands or replies."""

    params = (CALLS, list(REPEATS))
    param_names = ("call", "records")

    def setup(self, counts: dict[str, float], call: str, records: int) -> None:
        _skip_missing(counts, f"{call}, {records:,}")

    def track_instructions(self, counts: dict[str, float], call: str, records: int) -> float:
        return counts[f"{call}, {records:,}"]

    track_instructions.unit = "instructions"  # type: ignore[attr-defined]


class Requests:
    """One request in flight, over a store that discards."""

    params = NAMES
    param_names = ("request",)

    def setup(self, counts: dict[str, float], request: str) -> None:
        _skip_missing(counts, request)

    def track_instructions(self, counts: dict[str, float], request: str) -> float:
        return counts[request]

    track_instructions.unit = "instructions"  # type: ignore[attr-defined]
