"""Freed memory is there for the next large buffer, and goes back when it is asked for: in processes of their own."""

import ctypes
import subprocess
import sys

from requirement import missing

PROGRAM = """
import resource, sys
from korvet_fast.cli.memory import keep_freed

if sys.argv[1] == "kept":
    keep_freed()
b"x" * (1 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    b"x" * (1 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

# Threads that have freed 32 MiB each, in blocks that are no mappings of their own.
IN_THREADS = """
import ctypes, sys, threading
from korvet_fast.cli.memory import keep_freed

if sys.argv[1] == "kept":
    keep_freed()
filled, over = threading.Event(), threading.Event()

def fill():
    blocks = [b"x" * (64 << 10) for _ in range(512)]
    blocks.clear()
    filled.set()
    over.wait()

for _ in range(4):
    threading.Thread(target=fill).start()
    filled.wait()
    filled.clear()
ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
lines = open("/proc/self/status").read().splitlines()
print(next(line for line in lines if line.startswith("RssAnon:")).split()[1])
over.set()
"""


def run(program: str, how: str) -> int:
    """The number that a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", program, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def count_faults(how: str) -> int:
    program = PROGRAM.replace("(1 << 20)", "size").replace("import resource", "size = 1 << 20\nimport resource", 1)
    return run(program, how)


def test_a_large_buffer_takes_the_place_of_the_last_one() -> None:
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        missing("this C library cannot be told")
    assert count_faults("kept") < 100 < count_faults("not")


def test_what_threads_have_freed_goes_back() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        missing("this C library gives nothing back when asked")
    assert run(IN_THREADS, "kept") < 40 << 10
