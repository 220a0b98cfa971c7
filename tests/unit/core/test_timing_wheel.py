"""The timing wheel: nobody waits too short, few timers are made, and none is left behind."""

import asyncio

from korvet_fast.core.signal import Signal
from korvet_fast.core.timing_wheel import TimingWheel

TICK = 1 / 64  # seconds


class Watched(Signal):
    """A signal that knows when it was set."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        super().__init__()
        self.at: float | None = None

    def set(self) -> None:
        self.at = asyncio.get_running_loop().time()
        super().set()


def timers(wheel: TimingWheel) -> int:
    return len(wheel._ticks)


async def test_signals_are_set_when_their_time_is_over_and_not_before() -> None:
    wheel, loop = TimingWheel(), asyncio.get_running_loop()
    asked = {Watched(): seconds for seconds in (0.0, 0.001, 0.03, 0.1, 0.1)}
    began = loop.time()
    for signal, seconds in asked.items():
        wheel.add(signal, seconds)
    await asyncio.sleep(0.3)
    for signal, seconds in asked.items():
        assert signal.at is not None
        assert signal.at - began >= seconds - 0.001  # the loop's own clock counts milliseconds
    assert timers(wheel) == 0


async def test_waits_that_end_together_share_a_timer() -> None:
    wheel = TimingWheel()
    for _ in range(1000):
        wheel.add(Signal(), 30.0)
    assert timers(wheel) <= 2  # the thousand may lie on both sides of a tick


async def test_a_wait_that_is_over_leaves_nothing() -> None:
    wheel = TimingWheel()
    for number in range(1000):
        signal = Watched()
        wheel.remove(signal, wheel.add(signal, 30.0 + number * TICK * 2))  # each in a tick of its own
        assert timers(wheel) == 1  # the last one is kept: mostly more come
    signals = [(Watched(), 60.0 + number * TICK * 2) for number in range(100)]
    ticks = [wheel.add(signal, seconds) for signal, seconds in signals]
    assert timers(wheel) == 100
    for (signal, _), tick in zip(signals, ticks, strict=True):
        wheel.remove(signal, tick)
    assert timers(wheel) == 1


async def test_a_removed_signal_is_not_set() -> None:
    wheel, stays, goes = TimingWheel(), Watched(), Watched()
    wheel.add(stays, 0.01)
    wheel.remove(goes, wheel.add(goes, 0.01))
    await asyncio.sleep(0.1)
    assert (stays.at is not None, goes.at) == (True, None)
