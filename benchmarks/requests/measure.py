"""Time and allocations of a request, beside the reference loop in the same run.

Time is the processor's, of this thread: nothing is waited for here, and what else runs on the machine does not count.
"""

import gc
import time
from statistics import median
from typing import NamedTuple

from benchmarks import probe
from benchmarks.requests.cases import Case, verify
from benchmarks.requests.connections import CONNECTIONS
from benchmarks.requests.reference import NOMINAL, work
from benchmarks.requests.wire import Wire

WARM = 300  # requests before anything counts: Python adapts its bytecode to what it sees
SPAN = 0.01  # seconds of one measurement, more or less
COUNTED = 100  # requests whose allocations are counted


class Figure(NamedTuple):
    """The result of one case. `ratio`: how many reference loops a request takes, the median over the rounds."""

    case: Case
    ratio: float
    allocations: float

    @property
    def micros(self) -> float:
        """Microseconds on the machine that the budgets are of."""
        return self.ratio * NOMINAL

    @property
    def kept(self) -> bool:
        """Whether the case is within its budget."""
        return self.case.budget is None or self.micros <= self.case.budget


async def measure(words: list[str], rounds: int) -> list[Figure]:
    """Every case whose name holds one of the words (none: all). Raises `BrokerError`."""
    figures = []
    for connected in (one for one in CONNECTIONS if one.has(words)):
        async with connected.opened() as wire:
            figures += [await _measure(wire, case, rounds) for case in await connected.prepare(wire, words)]
    return figures


async def _measure(wire: Wire, case: Case, rounds: int) -> Figure:
    await wire.ask(case.frames, WARM)
    for _ in range(WARM):
        work()
    times = max(1, int(SPAN / await _seconds(wire, case, WARM)))
    loops = max(1, int(SPAN / 2 / _reference(50)))
    gc.collect()
    ratios = []
    for _ in range(rounds):  # half of the reference loops before the requests, half after: the machine's pace changes
        before = _reference(loops)
        took = await _seconds(wire, case, times)
        ratios.append(2 * took / (before + _reference(loops)))
    allocations = await _allocations(wire, case)
    await verify(wire, case)  # still
    return Figure(case, median(ratios), allocations)


async def _seconds(wire: Wire, case: Case, times: int) -> float:
    """CPU seconds of one request."""
    prepared = wire.prepare(case.frames, times)
    began = time.thread_time()
    await wire.send(prepared)
    took = time.thread_time() - began
    wire.read()
    return took / (times * len(case.frames))


def _reference(loops: int) -> float:
    """Seconds of one reference loop."""
    began = time.thread_time()
    for _ in range(loops):
        work()
    return (time.thread_time() - began) / loops


async def _allocations(wire: Wire, case: Case) -> float:
    """How often a request asks Python's allocator for memory; what comes from Python's own free lists does not."""
    library = probe.load()
    prepared = wire.prepare(case.frames, COUNTED)
    gc.disable()
    try:
        library.probe_begin()
        try:
            await wire.send(prepared)
        finally:
            taken = library.probe_end()
    finally:
        gc.enable()
    return float(taken) / (COUNTED * len(case.frames))
