"""Liveness: the brokers that are alive, judged by the heartbeats that this broker has seen. No clock, no I/O.

Clocks of different machines are never compared. Time between two refreshes counts for a limited number of seconds only:
if the store or this program stood still, no broker could send a heartbeat meanwhile.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from korvet_fast.core.cluster.broker_registration import BrokerRegistration


class LastHeartbeat(NamedTuple):
    """A broker's last heartbeat, and the seconds that this broker has watched in vain for the next one."""

    incarnation: str
    heartbeat: int
    silence: float


class Liveness:
    """`lease`: seconds of silence after which a broker is dead.

    `step`: seconds that the time between two refreshes counts for, at most. `has_ended`: whether the process with an
    incarnation is known to have ended; then nobody waits for its heartbeats.
    """

    __slots__ = ("_last_heartbeats", "_observed_at", "_step", "has_ended", "lease")

    def __init__(self, lease: float, step: float, has_ended: Callable[[str], bool] = lambda incarnation: False) -> None:
        self.has_ended = has_ended
        self.lease = lease
        self._step = step
        self._last_heartbeats: dict[int, LastHeartbeat] = {}
        self._observed_at: float | None = None

    def observe(self, members: Iterable[BrokerRegistration], now: float) -> set[int]:
        """Take the records read at monotonic time `now` (seconds); returns the ids of brokers that are dead."""
        passed = 0.0 if self._observed_at is None else min(now - self._observed_at, self._step)
        self._observed_at = now
        before, self._last_heartbeats = self._last_heartbeats, {}
        for member in members:
            last = before.get(member.id)
            same = last is not None and last[:2] == (member.incarnation, member.heartbeat)
            silence = last.silence + passed if last is not None and same else 0.0
            self._last_heartbeats[member.id] = LastHeartbeat(member.incarnation, member.heartbeat, silence)
        return {
            identity
            for identity, last in self._last_heartbeats.items()
            if last.silence >= self.lease or self.has_ended(last.incarnation)
        }
