"""The memory of the process while it serves: when Python collects garbage, and when freed memory goes back.

A full garbage collection visits every object: with 20,000 partitions it takes 50 ms, and nobody is served meanwhile.
The broker's own objects form no circles of references that come and go, so one full collection an hour is enough.

A young collection visits what was made since the one before. The interpreter starts one when 700 more objects were made
than freed: where as many go as come, 200,000 young ones pile up first, and the collection takes 100 ms. So a timer
starts young collections, too. No collection of the middle generation is made: it would visit all that they left.

The C library keeps freed memory between blocks that are still in use. After a flood, most of its memory is free.
While it gives 100 MB back, for some 60 ms, no other thread gets memory: a loop that is busy would stand still.
The interpreter keeps freed tuples, lists, dicts and floats for the next ones of their size, up to 2,000 of each. After
a flood they lie in pools all over the memory, and none of these goes back. A full collection empties these lists.

A broker that `korvet-fast serve` has started takes small objects from an allocator of ours (`rust/pools`), whose empty
pools of 16 KiB go back one by one. The interpreter's own gives back a MiB when nothing is left in it.

The interpreter's cache of attributes (CPython's `type_cache`) keeps the 4,096 names that were looked up last. A name
that C code makes for one call, as asyncio does for the result of a future, takes an entry each time; after a flood
such names lie all over the memory, too.
"""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable
from time import thread_time
from typing import Final

from korvet_fast._native import give_back_small_objects

FULL_COLLECTION: Final = 3600.0  # seconds between two full collections
YOUNG_COLLECTION: Final = 0.1  # seconds between two young collections; a busy loop makes some 20,000 objects meanwhile
GIVE_BACK: Final = 10.0  # seconds until freed memory goes back, and the cache of attributes is cleared, once more
KEPT: Final = 8 << 20  # bytes that may stay free; a call that frees nothing takes 0.2 ms, on another thread
QUIET: Final = 0.5  # of the loop's time since the check before: memory goes back while less of it is used
_NEVER: Final = 1 << 30
# Python 3.13 has the newer name.
_clear_attribute_cache: Final[Callable[[], object]] = (
    getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
)


def _collect_young() -> None:
    if gc.isenabled():
        gc.collect(0)


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
        self._exempted = False  # more objects than those of the start
        self._checked = 0.0, 0.0  # the loop's time and its thread's processor time at the check before
        self._timers: dict[Callable[[], object], asyncio.TimerHandle] = {}
        library = ctypes.CDLL(None)
        self._mallinfo = getattr(library, "mallinfo2", None)  # glibc 2.33
        self._trim = getattr(library, "malloc_trim", None)
        if self._mallinfo is not None:
            self._mallinfo.restype = _Mallinfo2

    def start(self) -> None:
        """Exempt the objects that exist now from collections, and run full collections by a timer of our own."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(self._thresholds[0], _NEVER, _NEVER)
        self._every(YOUNG_COLLECTION, _collect_young)
        self._every(FULL_COLLECTION, self._collect)
        self._every(GIVE_BACK, _clear_attribute_cache)
        self._every(GIVE_BACK, self._give_back_small_objects)
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

    def _collect(self) -> None:
        if self._exempted:
            gc.unfreeze()
        gc.collect()
        if self._exempted:
            gc.freeze()

    def _give_back_small_objects(self) -> None:
        self._loop.run_in_executor(None, give_back_small_objects)  # it takes milliseconds after a flood

    def _give_back(self) -> None:
        assert self._mallinfo is not None
        assert self._trim is not None
        if self._is_quiet() and self._mallinfo().fordblks > KEPT:
            # A full collection that has nothing to visit. The next one in `_collect` visits the objects that this one
            # exempts.
            gc.freeze()
            gc.collect()
            self._exempted = True
            self._loop.run_in_executor(None, self._trim, ctypes.c_size_t(0))  # ctypes releases the interpreter's lock

    def _is_quiet(self) -> bool:
        before, self._checked = self._checked, (self._loop.time(), thread_time())
        passed, used = (now - then for now, then in zip(self._checked, before, strict=True))
        return used < QUIET * passed
