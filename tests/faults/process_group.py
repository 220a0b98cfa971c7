"""A command of a test run together with all that it starts: brokers and servers of a test that hangs end with it."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_running: set["subprocess.Popen[str]"] = set()
_changing = threading.Lock()  # held from a command's start until it is among them


def run_group(command: Sequence[str], cwd: Path, within: float, environment: Mapping[str, str]) -> tuple[int, str]:
    """Its exit code, and what it said. Raises `TimeoutExpired`, when nothing of it runs any more.

    `environment`: beside that of this process.
    """
    with _changing:
        running = subprocess.Popen(
            command,
            cwd=cwd,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        _running.add(running)
    with running:
        try:
            said, _ = running.communicate(timeout=within)
        except BaseException:
            _end(running)
            raise
        finally:
            _running.discard(running)
    return running.returncode, said


def end_groups() -> None:
    """End those that other threads run: an interruption from the keyboard does not reach them."""
    with _changing:
        for running in list(_running):
            _end(running)


def _end(running: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError):  # it has just ended, with all of it
        os.killpg(running.pid, signal.SIGKILL)
