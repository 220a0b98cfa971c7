"""Every request from bytes in to bytes out: in loops of the reference, and how often it allocates."""

import uvloop

from benchmarks.requests.connections import CONNECTIONS
from benchmarks.requests.measure import measure

ROUNDS = 15


async def _names() -> list[str]:
    names = []
    for connected in CONNECTIONS:
        async with connected.opened() as wire:
            names += [case.name for case in await connected.prepare(wire)]
    return names


NAMES = uvloop.run(_names())


def setup_cache() -> dict[str, tuple[float, float]]:
    """Once for each commit: reference loops and allocations of every request."""
    figures = uvloop.run(measure([], ROUNDS))
    return {figure.case.name: (figure.ratio, figure.allocations) for figure in figures}


setup_cache.timeout = 600  # type: ignore[attr-defined]


class Requests:
    """One request in flight, over a store that discards."""

    params = NAMES
    param_names = ("request",)

    def track_reference_loops(self, figures: dict[str, tuple[float, float]], request: str) -> float:
        return figures[request][0]

    def track_allocations(self, figures: dict[str, tuple[float, float]], request: str) -> float:
        return figures[request][1]

    track_reference_loops.unit = "reference loops"  # type: ignore[attr-defined]
    track_allocations.unit = "allocations"  # type: ignore[attr-defined]
