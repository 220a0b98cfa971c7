"""Deadlines of many short waits: those that fall into the same 16 ms share a timer.

A timer of the loop costs as much as a tenth of a produce, and hardly one ever ends. A hashed timing wheel: Varghese and
Lauck, "Hashed and Hierarchical Timing Wheels" (1987), which Kafka's purgatory follows too.
"""

import asyncio
from typing import Final

from korvet_fast.core.signal import Signal

_PER_SECOND: Final = 64  # ticks


class Tick:
    """The waits that end with one tick."""

    __slots__ = ("number", "signals", "timer")

    timer: asyncio.TimerHandle

    def __init__(self, number: int) -> None:
        self.number = number
        self.signals: dict[Signal, None] = {}


class TimingWheel:
    """Sets signals when their time is over, up to a tick later than asked for. Made inside of a loop."""

    __slots__ = ("_last", "_loop", "_ticks")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ticks: dict[int, Tick] = {}
        self._last: Tick | None = None  # where a signal was added last; kept when it is empty, as mostly more come

    def add(self, signal: Signal, seconds: float) -> Tick:
        """Set `signal` after so many seconds; returns where it is, for `remove`."""
        number = int((self._loop.time() + seconds) * _PER_SECOND) + 1
        tick = self._last
        if tick is None or tick.number != number:
            before, tick = tick, self._ticks.get(number)
            if tick is None:
                tick = self._ticks[number] = Tick(number)
                tick.timer = self._loop.call_at(number / _PER_SECOND, self._expire, tick)
            self._last = tick
            if before is not None and not before.signals:
                self._forget(before)
        tick.signals[signal] = None
        return tick

    def remove(self, signal: Signal, tick: Tick) -> None:
        """The wait is over. `tick`: as `add` returned it."""
        tick.signals.pop(signal, None)
        if not tick.signals and tick is not self._last:
            self._forget(tick)

    def _forget(self, tick: Tick) -> None:
        tick.timer.cancel()
        if self._ticks.get(tick.number) is tick:  # a timer may end a millisecond early, and its tick begin once more
            del self._ticks[tick.number]

    def _expire(self, tick: Tick) -> None:
        self._forget(tick)
        if self._last is tick:
            self._last = None
        for signal in tick.signals:
            self._loop.call_soon(signal.set)
