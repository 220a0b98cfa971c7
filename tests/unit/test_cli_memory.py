"""Freed memory is there for the next large buffer: counted in page faults, in a process of its own."""

import ctypes
import subprocess
import sys

import pytest

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


def count_faults(how: str) -> int:
    program = PROGRAM.replace("(1 << 20)", "size").replace("import resource", "size = 1 << 20\nimport resource", 1)
    done = subprocess.run([sys.executable, "-c", program, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library cannot be told")
def test_a_large_buffer_takes_the_place_of_the_last_one() -> None:
    assert count_faults("kept") < 100 < count_faults("not")
