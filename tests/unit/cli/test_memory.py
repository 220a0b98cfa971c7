"""Freed memory is there for the next large buffer, and goes back when it is asked for: in processes of their own."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from broker_process import BrokerProcess
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

# 100 MB of small objects, of which each thousandth lives on.
FLOOD = """
import ctypes
from korvet_fast.cli.memory import keep_freed, use_c_allocator

use_c_allocator()
keep_freed()
flood = [[number] for number in range(1_000_000)]
survivors = flood[::1000]
flood.clear()
ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
lines = open("/proc/self/status").read().splitlines()
print(next(line for line in lines if line.startswith("RssAnon:")).split()[1])
"""


def run(program: str, how: str, **environment: str) -> int:
    """The number that a process of its own prints."""
    command = [sys.executable, "-c", program, how]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"}
    done = subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=True)
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


def test_small_objects_that_live_on_keep_no_more_than_their_pages() -> None:
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        missing("this C library gives nothing back when asked")
    assert run(FLOOD, "") < 40 << 10 < run(FLOOD, "", PYTHONMALLOC="pymalloc")


def test_a_broker_has_the_allocator_of_the_c_library(tmp_path: Path) -> None:
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        missing("this C library gives nothing back when asked")
    with BrokerProcess(tmp_path / "data") as broker:
        environment = Path(f"/proc/{broker.pid}/environ").read_bytes().split(b"\0")
    assert b"PYTHONMALLOC=malloc" in environment


def test_somebody_who_chose_an_allocator_has_it(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", before=["env", "PYTHONMALLOC=pymalloc_debug"]) as broker:
        environment = Path(f"/proc/{broker.pid}/environ").read_bytes().split(b"\0")
    assert b"PYTHONMALLOC=pymalloc_debug" in environment
