"""The memory of a broker's process comes from the C library, where that is glibc, and is kept for the next buffer."""

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_KEPT = 64 << 20  # bytes that may lie free at the heap's end, until `net.memory` gives them back
_MAPPED = 32 << 20  # a buffer of so many bytes is a mapping of its own: the most that glibc accepts
_ALLOCATOR = "PYTHONMALLOC"


def use_c_allocator() -> None:
    """Begin the process anew with the C library's allocator below Python's objects, unless somebody chose one already.

    Python's own allocator takes a MiB at a time and gives it back when no object is left in it. After a flood, objects
    that live on are in every one of them; glibc gives back each free page between them. Only the environment can choose
    the allocator, before Python starts (https://docs.python.org/3/c-api/memory.html#default-memory-allocators).
    """
    if _ALLOCATOR not in os.environ and hasattr(ctypes.CDLL(None), "mallinfo2"):
        environment = os.environ | {_ALLOCATOR: "malloc"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606  (ourselves again)


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
