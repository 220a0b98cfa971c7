"""Counting where no clock is needed: allocations of this process, and marks for callgrind that runs it."""

import ctypes
import os
import subprocess
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
LIBRARY = SOURCE.parents[1] / ".cache" / "probe.so"
VALGRIND = Path("/usr/include/valgrind/callgrind.h")


@cache
def load() -> ctypes.PyDLL:
    """The library, compiled if its source is newer. Exits with a sentence where valgrind's headers are missing."""
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
        if not VALGRIND.exists():
            raise SystemExit(f"{VALGRIND} is missing: install valgrind (`make tools` does on Debian)")
        LIBRARY.parent.mkdir(exist_ok=True)
        fresh = LIBRARY.with_suffix(f".{os.getpid()}")  # two sides of a comparison may both find it missing
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", fresh, SOURCE], check=True)
        fresh.replace(LIBRARY)
    library = ctypes.PyDLL(str(LIBRARY))
    library.probe_end.restype = ctypes.c_long
    library.probe_dump.argtypes = [ctypes.c_char_p]
    return library
