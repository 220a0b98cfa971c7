"""Runs `program.py` under callgrind, and reads what it wrote."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.check import NOTHING

ROOT = Path(__file__).parents[2]
_PART = re.compile(r"^desc: Trigger: Client Request: (\w+) (\d+) (.*?)\n.*?^totals: (\d+)$", re.MULTILINE | re.DOTALL)
# What glibc does by itself depends on addresses, so on everything that ran before: whether a large copy is a loop or
# one repeated instruction, each step of which counts, and whether a large buffer is mapped anew or cleared. Here copies
# are loops, and memory is kept as the broker keeps it (cli/memory.py).
_TUNABLES = ":".join(
    f"glibc.{name}={value}"
    for name, value in {
        "cpu.x86_non_temporal_threshold": 0x7FFFFFFF,
        "cpu.x86_rep_movsb_threshold": 0x7FFFFFFF,
        "cpu.x86_rep_stosb_threshold": 0x7FFFFFFF,
        "malloc.mmap_threshold": 32 << 20,
        "malloc.trim_threshold": 64 << 20,
    }.items()
)
_LAST = 3000  # characters of a failed run that are shown


class Uncounted(Exception):
    """The program did not run to its end under callgrind; the text ends with what it said."""


def count(side: Path, words: Sequence[str] = (), harness: Path = ROOT) -> dict[str, float]:
    """Instructions of every call and request by name, of the package in `side`, a directory that holds `korvet_fast`.

    `words`: only those whose names hold one of them. `harness`: the directory whose `benchmarks` is run. Native calls
    are named `validate_batch, 100` with the number of records. Raises `Uncounted`.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("valgrind is missing: install it (`make tools` does on Debian)")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "counts"
        options = ["--tool=callgrind", "--instr-atstart=no", "--combine-dumps=yes", f"--callgrind-out-file={out}"]
        program = [sys.executable, "-P", "-m", "benchmarks.check.program", *words]
        # Nothing of this shell's environment: the size of it moves the stack, and with it some counts.
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONHASHSEED": "0",
            "GLIBC_TUNABLES": _TUNABLES,
            "PYTHONPATH": f"{side}{os.pathsep}{harness}",
        }
        ran = subprocess.run(
            [valgrind, "-q", *options, *program], env=environment, cwd=scratch, capture_output=True, text=True
        )
        if ran.returncode != 0 or not out.exists():
            raise Uncounted(f"counting {side} ended with status {ran.returncode}:\n{ran.stderr[-_LAST:]}")
        return read(out.read_text())


def read(written: str) -> dict[str, float]:
    """Instructions of one call or request by name, of what callgrind wrote."""
    parts = _PART.findall(written)
    found = [(kind, int(repeats), name, int(total) / int(repeats)) for kind, repeats, name, total in parts]
    nothing = {repeats: each for _, repeats, name, each in found if name == NOTHING}
    return {
        name: each - nothing[repeats] if kind == "call" else each
        for kind, repeats, name, each in found
        if name != NOTHING
    }
