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


class PausableProcess:
    """A server that a test runs as a child process: `process`, or None while it does not run."""

    process: "subprocess.Popen[Any] | None"

    def pause(self) -> None:
        """SIGSTOP, and until every thread of it has stopped: the signal alone leaves a busy one time to go on.

        Connections stay open, and nothing is answered.
        """
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.process.pid}/task")
        while not all(map(_stands_still, tasks.iterdir())):
            time.sleep(0.001)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
