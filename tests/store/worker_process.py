"""A worker's store in another process (worker_child.py), as a test commands it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pausable import PausableProcess


class WorkerProcess(PausableProcess):
    """The worker `number` over a directory. Use it as a context: it is open inside, and killed at the end."""

    def __init__(self, directory: Path, number: int = 2) -> None:
        self._directory = directory
        self._number = number
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "WorkerProcess":
        """Start, and wait until the store is open."""
        tests = Path(__file__).parent.parent
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent)])}
        command = [sys.executable, str(tests / "store" / "worker_child.py"), str(self._directory), str(self._number)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "open\n"
        return self

    def __enter__(self) -> "WorkerProcess":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    async def do(self, word: str, *arguments: Any) -> Any:
        """Have it do something (see worker_child.py); a failure is a dictionary with an `error`."""
        return await asyncio.to_thread(self.do_now, word, *arguments)

    def do_now(self, word: str, *arguments: Any) -> Any:
        """As `do`, for a test whose own store has nothing to do meanwhile."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([word, *arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())
