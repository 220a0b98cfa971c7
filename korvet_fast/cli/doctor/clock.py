"""Checks this machine's clock: against that of Redis, or against files that cannot be newer than now."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from korvet_fast.cli.doctor.finding import Finding, good, warn

_FAR: Final = 5.0  # seconds
_WHY: Final = "retention, certificates and tokens go by it. Have it follow NTP."


def examine_files_clock(directory: Path) -> Iterator[Finding]:
    """Look at the files of a data directory, if it is there and may be read: none is newer than now."""
    try:
        with os.scandir(directory) as entries:
            changed, name = max(((entry.stat().st_mtime, entry.path) for entry in entries), default=(0.0, ""))
    except OSError:
        return  # what that means is told elsewhere
    ahead = changed - time.time()
    if ahead > _FAR:
        yield warn("clock", f"this machine's is {ahead:,.0f} s behind the last change of {name}: {_WHY}")
    elif name:
        yield good("clock", f"nothing in {directory} is newer than now")


def judge_clock(ahead: float, other: str) -> Finding:
    """`ahead`: seconds from the time of `other` to ours."""
    if abs(ahead) <= _FAR:
        return good("clock", f"this machine's and that of {other} are less than {_FAR:g} s apart")
    way = "ahead of" if ahead > 0 else "behind"
    return warn(
        "clock", f"this machine's is {abs(ahead):,.0f} s {way} that of {other}, and one of them is wrong: {_WHY}"
    )
