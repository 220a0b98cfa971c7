"""A group's lag over time as the points of a small picture."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from korvet_fast.core.groups.lag import INTERVAL, UNKNOWN

WIDTH: Final = 140
HEIGHT: Final = 30
_EDGE: Final = 2


class Graph(NamedTuple):
    """`lines`: of points, one for each time without a gap. `words`: the same for who does not see it."""

    lines: list[str]
    words: str


def draw(lags: Sequence[int]) -> Graph | None:
    """These lags from left to right, oldest first; None before two are known."""
    known = [lag for lag in lags if lag != UNKNOWN]
    if len(known) < 2:
        return None
    most = max(known)
    step = (WIDTH - 2 * _EDGE) / (len(lags) - 1)
    lines: list[str] = []
    points: list[str] = []
    for at, lag in enumerate([*lags, UNKNOWN]):
        if lag != UNKNOWN:
            height = (HEIGHT - 2 * _EDGE) * lag / max(most, 1)
            points.append(f"{_EDGE + at * step:.1f},{HEIGHT - _EDGE - height:.1f}")
        elif points:
            lines.append(" ".join(points))
            points = []
    minutes = max(1, round((len(lags) - 1) * INTERVAL / 60))
    return Graph(lines, f"lag of the last {minutes} min: {min(known):,} to {most:,}, now {known[-1]:,}")
