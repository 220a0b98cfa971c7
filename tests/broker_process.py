"""A real broker process for tests: started on free ports, killed and restarted at will."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakSet

from counts import note_process
from pausable import PausableProcess
from redis_server import free_port

READY_WITHIN = 200.0  # seconds: a busy machine may take long
RUNNING: "WeakSet[BrokerProcess]" = WeakSet()  # those of this process: a test that fails shows what they said


class BrokerProcess(PausableProcess):
    """`korvet-fast serve` as a child process over one data directory; the address stays the same over restarts.

    `before`: a command that runs the broker in its turn (`prlimit --nofile=64`). `arguments`: more of them for `serve`.
    """

    def __init__(
        self,
        data: Path,
        *settings: str,
        store: str | None = None,
        before: Sequence[str] = (),
        arguments: Sequence[str] = (),
    ) -> None:
        self.store = store or f"file:{data}"
        self.settings = settings
        self.before = before
        self.arguments = arguments
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.log: list[str] = []  # of all its lives; whole when it has ended
        self._following = threading.Thread()
        RUNNING.add(self)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> "BrokerProcess":
        """Start and wait for the ready line; always on the same port."""
        self.port = self.port or free_port()
        command = [*self.before, sys.executable, "-m", "korvet_fast", "serve", "--store", self.store]
        command += ["--listen", f"kafka://127.0.0.1:{self.port}", *self.arguments]
        for setting in self.settings:
            command += ["--set", setting]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ready = threading.Event()
        self._following = threading.Thread(target=self._follow, args=(self.process, ready), daemon=True)
        self._following.start()
        deadline = time.monotonic() + READY_WITHIN
        while not ready.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop(signal.SIGKILL)
                raise AssertionError("the broker did not become ready:\n" + "".join(self.log))
        note_process(self.process.pid, "start")
        return self

    def _follow(self, process: "subprocess.Popen[str]", ready: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.log.append(line)
                if "ready kafka://" in line:
                    ready.set()

    def stop(self, with_signal: int = signal.SIGTERM, within: float = 200.0) -> int:
        """End the process and return its exit code."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            note_process(process.pid, "end")
            process.send_signal(with_signal)
        try:
            code = process.wait(within)
            self._following.join(60)
            return code
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("the broker did not stop in time:\n" + "".join(self.log[-50:])) from None

    def kill(self) -> None:
        """kill -9: nothing is flushed, nothing is said."""
        self.stop(signal.SIGKILL)

    def __enter__(self) -> "BrokerProcess":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL if sys.exc_info()[0] else signal.SIGTERM)
