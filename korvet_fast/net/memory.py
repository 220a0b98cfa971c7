"""The memory of the process while it serves: when Python collects garbage, and when freed memory goes back.

A full garbage collection visits every object: with 20,000 partitions it takes 50 ms, and nobody is served meanwhile.
The broker's own objects form no circles of references that come and go, so one full collection an hour is enough.

The C library keeps freed memory between blocks that are still in use. After a flood, most of its memory is free.
Giving its pages back takes up to 50 ms, on another thread, and others who allocate wait for a part of that. So what one
call leaves, as no whole page of it is free, is no reason for the next one.
"""

import asyncio
import ctypes
import gc
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Final

FULL_COLLECTION: Final = 3600.0  # seconds between two full collections
GIVE_BACK: Final = 10.0  # seconds between two checks of the free memory
KEPT: Final = 8 << 20  # bytes of free pages that are not worth a call
_NEVER: Final = 1 << 30


class _Mallinfo2(ctypes.Structure):
    """The result of mallinfo2(3): `fordblks` is the number of free bytes."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class Memory:
    """Looks after the memory of the running loop's process from `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thresholds = gc.get_threshold()
        self._timers: dict[Callable[[], object], asyncio.TimerHandle] = {}
        library = ctypes.CDLL(None)
        self._mallinfo = getattr(library, "mallinfo2", None)  # glibc 2.33
        self._trim = getattr(library, "malloc_trim", None)
        self._kept = 0  # bytes that were resident beyond what is in use, when free pages had gone back last
        if self._mallinfo is not None:
            self._mallinfo.restype = _Mallinfo2

    def start(self) -> None:
        """Exempt the objects that exist now from collections, and run full collections by a timer of our own."""
        gc.collect()
        gc.freeze()
        young, middle, _ = self._thresholds
        gc.set_threshold(young, middle, _NEVER)
        self._every(FULL_COLLECTION, gc.collect)
        if self._mallinfo is not None and self._trim is not None:
            self._every(GIVE_BACK, self._give_back)

    def stop(self) -> None:
        """Undo `start`."""
        for timer in self._timers.values():
            timer.cancel()
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def _every(self, seconds: float, work: Callable[[], object]) -> None:
        def again() -> None:
            work()
            self._every(seconds, work)

        self._timers[work] = self._loop.call_later(seconds, again)

    def _give_back(self) -> None:
        self._loop.run_in_executor(None, self._give_back_pages)  # ctypes releases the interpreter's lock

    def _give_back_pages(self) -> None:
        assert self._trim is not None
        if self._resident_beyond_use() > self._kept + KEPT:
            self._trim(ctypes.c_size_t(0))
            self._kept = self._resident_beyond_use()

    def _resident_beyond_use(self) -> int:
        """Bytes of the process's own pages that no block of the C library is in."""
        assert self._mallinfo is not None
        held = self._mallinfo()
        in_use: int = held.uordblks + held.hblkhd
        return _resident() - in_use


def _resident() -> int:
    """Bytes of pages that are in memory and belong to the process alone (proc_pid_statm(5))."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (resident - shared) * mmap.PAGESIZE
