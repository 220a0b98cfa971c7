"""Freed memory is kept for the next buffer, where the C library can do so (glibc)."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_KEPT = 64 << 20  # bytes that may lie free at the heap's end, until `net.memory` gives them back
_MAPPED = 32 << 20  # a buffer of so many bytes is a mapping of its own: the most that glibc accepts


def keep_freed() -> None:
    """Spare the kernel from clearing the pages of every large buffer anew.

    Otherwise each buffer of 128 KiB or more is mapped and unmapped; fetches over Redis, which pass through several of
    a megabyte, then spend most of their time on page faults.

    All threads share one heap: malloc_trim(3) gives back the end of that one only, and each other would keep its 64 MiB
    for good.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MAPPED)
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_ARENA_MAX, 1)
