"""Who is alive, judged by beats that come or do not come while one watches. Pure: no clock, no I/O.

No clock is compared with another one's, and a time in which nobody looked counts for little: a server that stopped, or
a stop of this program itself, silences all others at once.
"""

from collections.abc import Iterable
from typing import NamedTuple

from korvet_fast.core.cluster.member import Member


class Heard(NamedTuple):
    """The last that was heard of a broker, and for how many seconds one has watched in vain since."""

    incarnation: str
    beat: int
    silence: float


class Liveness:
    """`lease`: seconds of silence after which a broker is dead.

    `step`: seconds that the time between two looks counts for, at most.
    """

    __slots__ = ("_heard", "_lease", "_looked", "_step")

    def __init__(self, lease: float, step: float) -> None:
        self._lease = lease
        self._step = step
        self._heard: dict[int, Heard] = {}
        self._looked: float | None = None

    def observe(self, members: Iterable[Member], now: float) -> set[int]:
        """These records stand at monotonic time `now`, in seconds; the ids of those silent for the whole lease."""
        passed = 0.0 if self._looked is None else min(now - self._looked, self._step)
        self._looked = now
        before, self._heard = self._heard, {}
        for member in members:
            last = before.get(member.id)
            same = last is not None and last[:2] == (member.incarnation, member.beat)
            silence = last.silence + passed if last is not None and same else 0.0
            self._heard[member.id] = Heard(member.incarnation, member.beat, silence)
        return {identity for identity, heard in self._heard.items() if heard.silence >= self._lease}
