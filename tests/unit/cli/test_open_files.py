"""`korvet-fast serve` where it may open few files: it does not start, and says how many it needs."""

import errno
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker_process import BrokerProcess

SERVE = ("-m", "korvet_fast", "serve")
# A launcher may have left files open, and a machine may have no more: the limit is reached although it was checked.
FAILING = """
import os, sys, uvloop
from korvet_fast.cli import main

def fail(coroutine):
    coroutine.close()
    raise OSError(int(sys.argv[1]), os.strerror(int(sys.argv[1])), "/proc/self/fd")

uvloop.run = fail
main(["serve", *sys.argv[2:]])
"""


def refuse(*command: str, before: Sequence[str] = ()) -> str:
    """What a `serve` says that must not start."""
    done = subprocess.run([*before, sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert "chosen with --listen" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("limit", "workers", "needed"), [(8, 1, 66), (14, 1, 66), (65, 1, 66), (10, 3, 74), (20, 3, 74), (73, 3, 74)]
)
def test_a_broker_that_may_open_too_few_files_says_how_many_it_needs(
    tmp_path: Path, limit: int, workers: int, needed: int
) -> None:
    listen = ("--listen", "kafka://127.0.0.1:0", "--listen", "http://127.0.0.1:0")
    several = ("--workers", str(workers), "--worker-ports", "20000-20999") if workers > 1 else ()
    before = ("prlimit", f"--nofile={limit}:{limit}")
    said = refuse(*SERVE, "--store", f"file:{tmp_path / 'data'}", *listen, *several, before=before)
    assert said == (
        f"Error: this process may open {limit} files, and this broker needs at least {needed}: "
        "raise the limit of open files (`ulimit -n`, LimitNOFILE=).\n"
    )
    assert not (tmp_path / "data").exists()


def test_doctor_says_so_before(tmp_path: Path) -> None:
    doctor = ("-m", "korvet_fast", "doctor", "--store", f"file:{tmp_path}", "--listen", "kafka://127.0.0.1:0")
    command = ["prlimit", "--nofile=63:63", sys.executable, *doctor]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "bad   files        this process may open 63 files, and this broker needs at least 64: raise" in done.stdout
    assert done.returncode == 1


def test_the_fewest_files_are_enough(tmp_path: Path) -> None:
    """And a limit that this user may raise is raised before anything is opened."""
    for limit in ("64:64", "8:64"):
        with BrokerProcess(tmp_path / "data", before=("prlimit", f"--nofile={limit}")) as broker:
            assert broker.stop() == 0


@pytest.mark.parametrize(("code", "limit"), [(errno.EMFILE, "ulimit -n"), (errno.ENFILE, "sysctl fs.file-max")])
def test_a_limit_that_is_reached_in_a_start_is_named(tmp_path: Path, code: int, limit: str) -> None:
    said = refuse("-c", FAILING, str(code), "--store", f"file:{tmp_path}", "--listen", "kafka://127.0.0.1:0")
    assert "Error: Too many open files" in said
    assert "raise the limit of" in said
    assert f"`{limit}`" in said
