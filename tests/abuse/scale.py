"""The scale of a campaign: short in every run of the tests, full for the table."""

import os
from pathlib import Path
from typing import NamedTuple

from abuse.row import MEMORY, MIB

HERE = Path(__file__).parents[2]


class Scale(NamedTuple):
    """Seconds for each attack, for all of them at once and of rest after them; what is kept ends before the rest does.

    `allowance`: bytes of memory that may be left beside a fifth of the first, as not everything is due by then.
    `may_keep`: bytes that one attack of those that leave something behind may leave until then, once freed memory has
    been given back. `producers`: how many are remembered from the start, on files.
    """

    name: str
    single: float
    combined: float
    rest: float
    producers: int
    session_ms: int
    allowance: int
    may_keep: int
    settings: tuple[str, ...]


# Commits are kept for a minute at least, which is longer than the rest of the short scale.
_KEPT = (
    "offsets.retention.minutes={minutes}",
    "offsets.retention.check.interval.ms=1000",
    "producer.id.expiration.ms={ms}",
    "log.retention.check.interval.ms={ms}",
)


def _keep(minutes: int, ms: int) -> tuple[str, ...]:
    return tuple(setting.format(minutes=minutes, ms=ms) for setting in _KEPT)


# So little that the short scale can fill it.
_BUDGETS = (
    f"groups.memory.max.bytes={8 * MIB}",
    f"group.memory.max.bytes={4 * MIB}",
    "max.groups=2000",
    "max.producers=60000",
)
SHORT = Scale("short", 2.0, 10.0, 20.0, 50_000, 6_000, 32 * MIB, 24 * MIB, _keep(1, 5_000) + _BUDGETS)
FULL = Scale("full", 10.0, 60.0, 600.0, 100_000, 240_000, 0, MEMORY, _keep(4, 240_000))
SCALES = {"full": FULL, "": SHORT}


def chosen() -> Scale:
    """By KORVET_TEST_ABUSE, "full" or nothing."""
    return SCALES[os.environ.get("KORVET_TEST_ABUSE", "")]


def known(settings: tuple[str, ...], tree: Path) -> list[str]:
    """The settings among these that the broker of this checkout has."""
    table = "".join(path.read_text() for path in (tree / "korvet_fast").glob("config*.py"))
    return [setting for setting in settings if f'"{setting.partition("=")[0]}"' in table]


def tree() -> Path:
    """The checkout whose broker is attacked: KORVET_TEST_ABUSE_TREE, or this one."""
    return Path(os.environ.get("KORVET_TEST_ABUSE_TREE") or HERE)
