"""An attack: the finding's number, a sentence, and one strike, repeated until the time is up."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from abuse.wire import Line

# Takes the number of its process; returns how many of its peers the broker ended, if it has several.
Strike = Callable[["Target", int], int | None]
ATTACKERS = "127.0.0.2"  # where they connect from


class Target(NamedTuple):
    """The broker as attackers see it. `until`: the monotonic time at which the attack ends."""

    port: int
    layouts: tuple[str, ...]
    data: Path | None  # of a broker on files
    session_ms: int  # the longest session that members ask for
    until: float

    def line(self, *, source: str = ATTACKERS, buffer: int = 0) -> Line:
        """A connection whose calls end with the attack."""
        return Line(self.port, source=source, buffer=buffer, timeout=max(self.left(), 0.1))

    def left(self) -> float:
        """Seconds until the end."""
        return self.until - time.monotonic()

    def topic(self, name: str, worker: int) -> str:
        """The topic of this name in one of the layouts, another one for each worker in turn."""
        return f"{name}.{self.layouts[worker % len(self.layouts)]}"


@dataclass(frozen=True)
class Attack:
    """A row of the table. `strike` is called again and again, in as many processes as `processes` says.

    `times`: how many times as long as others it takes to do harm.
    """

    number: str
    sentence: str
    strike: Strike
    processes: int
    stores: tuple[str, ...]
    times: float


ATTACKS: dict[str, Attack] = {}


def attack(
    number: str,
    sentence: str,
    *,
    processes: int = 1,
    stores: tuple[str, ...] = ("files", "redis"),
    times: float = 1.0,
) -> Callable[[Strike], Strike]:
    """Put a function into the table as an attack."""

    def enter(strike: Strike) -> Strike:
        assert number not in ATTACKS
        ATTACKS[number] = Attack(number, sentence, strike, processes, stores, times)
        return strike

    return enter
