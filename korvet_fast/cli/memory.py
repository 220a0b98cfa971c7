"""Memory that has been freed is kept for the next buffer, where the C library can be told so (glibc)."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt(3)
KEPT = 64 << 20  # bytes that may lie free
_MAPPED = 32 << 20  # bytes from which on a buffer is a mapping of its own: the most that glibc takes


def keep_freed() -> None:
    """Spare the kernel from clearing the pages of every large buffer anew.

    Otherwise each buffer of 128 KiB or more is mapped and unmapped; fetches over Redis, which pass through several of
    a megabyte, then spend most of their time on page faults.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MAPPED)
        mallopt(_TRIM_THRESHOLD, KEPT)
