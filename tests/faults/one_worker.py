"""A worker of `serve --workers` in the place of one of several brokers: tests of brokers over Redis run over it too."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from broker_process import BrokerProcess
from faults.workers import WITHIN, Workers
from pausable import wait_until_still


class OneWorker(BrokerProcess):
    """The worker with this number, from 1, of a parent that runs.

    While it is stopped or killed its parent is paused, as that would start it again at once; `start` lets it.
    """

    def __init__(self, parent: Workers, number: int) -> None:
        self.parent = parent
        self.number = number
        self.port = parent.ports[number - 1]
        self.log = parent.log
        self._last = 0  # the process that was paused or ended
        self._lives = 0  # how often it had become ready by then

    @property
    def pid(self) -> int:
        return self.parent.pid_of(self.number)

    def stop(self, with_signal: int = signal.SIGTERM, within: float = WITHIN) -> int:
        """End the process, and return its exit code."""
        self._note()
        self.parent.pause()
        os.kill(self._last, with_signal)
        self._wait(lambda: self._has_ended, within)
        return os.waitstatus_to_exitcode(int(_read_stat(self._last)[-1]))

    def start(self) -> "OneWorker":
        """Have the parent start it again, and wait until it serves."""
        self.parent.resume()
        self._wait(lambda: self._count_lives() > self._lives, WITHIN)
        return self

    def pause(self) -> None:
        """SIGSTOP. The parent kills it after `broker.session.timeout.ms`, and starts it again."""
        self._note()
        os.kill(self._last, signal.SIGSTOP)
        wait_until_still(self._last)

    def wait_until_replaced(self) -> None:
        """Until the parent has killed it where it was paused, and started another process."""
        self._wait(lambda: self.pid != self._last, WITHIN)

    def resume(self) -> None:
        """SIGCONT; where it has been killed meanwhile, wait until it serves again."""
        if self._has_ended:
            self.start()
        else:
            os.kill(self._last, signal.SIGCONT)

    def _note(self) -> None:
        self._last, self._lives = self.pid, self._count_lives()

    @property
    def _has_ended(self) -> bool:
        return _read_stat(self._last)[:1] in ([], ["Z"])

    def _count_lives(self) -> int:
        return sum(f"ready kafka://127.0.0.1:{self.port}" in line for line in list(self.log))

    def _wait(self, true: Callable[[], bool], within: float) -> None:
        deadline = time.monotonic() + within
        while not true():
            assert time.monotonic() < deadline, "".join(self.log[-50:])
            time.sleep(0.01)


def _read_stat(pid: int) -> list[str]:
    """From its state to its exit code, see proc(5); nothing where there is no such process any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
