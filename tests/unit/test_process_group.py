"""A command that takes too long, or that nobody waits for any more, ends with all that it has started."""

import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from faults.process_group import end_groups, run_group


def begin(place: Path) -> list[str]:
    """A command that starts another, whose number it writes down, and waits for it."""
    return ["sh", "-c", f"sleep 1000 & echo $! > {place / 'new'}; mv {place / 'new'} {place / 'pid'}; wait"]


def wait_for(place: Path) -> psutil.Process:
    while not (place / "pid").exists():
        time.sleep(0.01)
    return psutil.Process(int((place / "pid").read_text()))


def wait_until_gone(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def test_what_a_command_did_and_said(tmp_path: Path) -> None:
    assert run_group(["sh", "-c", "echo $A; pwd >&2; exit 3"], tmp_path, 60, {"A": "b"}) == (3, f"b\n{tmp_path}\n")


def test_what_takes_too_long_ends_whole(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_group(begin(tmp_path), tmp_path, 5, {})
    assert (tmp_path / "pid").exists()
    with suppress(psutil.NoSuchProcess):
        wait_until_gone(wait_for(tmp_path))


def test_what_other_threads_wait_for_is_ended(tmp_path: Path) -> None:
    thread = threading.Thread(target=run_group, args=(begin(tmp_path), tmp_path, 600, {}))
    thread.start()
    child = wait_for(tmp_path)
    end_groups()
    wait_until_gone(child)
    thread.join()
