"""How many cores this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_MOUNTED = Path("/sys/fs/cgroup")


def count_cores(groups: Path = _GROUPS, mounted: Path = _MOUNTED) -> int:
    """The cores that this process may run on, or as many as its container may use the time of, at least 1."""
    quota = min(_find_quotas(groups, mounted), default=math.inf)
    return max(1, math.ceil(min(len(os.sched_getaffinity(0)), quota)))


def _find_quotas(groups: Path, mounted: Path) -> Iterator[float]:
    """The limits, in cores, of the control groups that this process is in, version 1 or 2."""
    for line in _read(groups).splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mounted / "cpu" if controllers else mounted
        place = top / name.strip("/")
        for each in (place, *place.parents):  # a container may see its own group as the top
            if each.is_relative_to(top):
                yield from _read_quota(each)


def _read_quota(group: Path) -> Iterator[float]:
    quota, _, period = _read(group / "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")
    if quota.strip().isdecimal() and period.strip().isdecimal():  # else "max", "-1", or no such file
        yield int(quota) / int(period)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
