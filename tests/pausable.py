"""Child processes of tests that can be made to stand still."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any


def _stands_still(thread: Path) -> bool:
    """Whether a thread has stopped, or ended before that."""
    try:
        return "\nState:\tT" in (thread / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until_still(pid: int) -> None:
    """Until every thread of it has stopped: SIGSTOP alone leaves a busy one time to go on."""
    while not all(map(_stands_still, Path(f"/proc/{pid}/task").iterdir())):
        time.sleep(0.001)


class PausableProcess:
    """A server that a test runs as a child process: `process`, or None while it does not run."""

    process: "subprocess.Popen[Any] | None"

    def pause(self) -> None:
        """SIGSTOP. Connections stay open, and nothing is answered."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        wait_until_still(self.process.pid)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
