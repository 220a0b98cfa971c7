"""Child processes of tests that can be made to stand still."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any


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
        while any("\nState:\tT" not in (task / "status").read_text() for task in tasks.iterdir()):
            time.sleep(0.001)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
