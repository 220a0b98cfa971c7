"""A Spark session in a process of its own (program.py), of any environment, that is told what to do."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

PROGRAM = Path(__file__).with_name("program.py")
TREE = Path(__file__).parents[3]
PATIENCE = 250.0  # seconds for one request, on a busy machine


class SparkError(Exception):
    """Spark's message, with the whole traceback."""


class Session:
    """One driver process. `korvet`: our source is registered there, from this tree.

    `environment`: more variables, above all another PYTHONPATH. `program` may be another one; `more` is told to it at
    the start. `said` is what it prints for people.
    """

    def __init__(
        self,
        python: Path,
        *,
        korvet: bool = False,
        master: str = "local[2]",
        conf: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        program: Path = PROGRAM,
        **more: Any,
    ) -> None:
        start = {"korvet": korvet, "master": master, "conf": conf or {}, **more}
        own = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        kept = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
        self.said: list[str] = []
        self._number = 0  # of the last request; its answer has it too
        self._answers: queue.Queue[str] = queue.Queue()
        self._process = subprocess.Popen(
            [str(python), str(program), json.dumps(start)],
            env=kept | own | ({"PYTHONPATH": str(TREE)} if korvet else {}) | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._listening = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=lambda: self.said.extend(self._process.stderr or ()), daemon=True),
        ]
        for thread in self._listening:
            thread.start()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._answers.put(line)
        self._answers.put("")

    def family(self) -> list[psutil.Process]:
        """The driver, its JVM and its Python workers, those that live."""
        if self._process.poll() is not None:
            return []
        driver = psutil.Process(self._process.pid)
        return [driver, *driver.children(recursive=True)]

    def send(self, do: str, **request: Any) -> None:
        """Ask without waiting for the answer."""
        assert self._process.stdin is not None
        self._number += 1
        self._process.stdin.write(json.dumps({"do": do, "number": self._number, **request}) + "\n")
        self._process.stdin.flush()

    def answer(self, within: float = PATIENCE) -> Any:
        """To the last request. Raises SparkError with Spark's own words, or when there is none in this many seconds."""
        found: dict[str, Any] = {}
        while found.get("number") != self._number:  # one before it may have been given up
            try:
                line = self._answers.get(timeout=within)
            except queue.Empty:
                line = ""
            if not line:
                self.kill()
                raise SparkError("the Spark session gave no answer:\n" + "".join(self.said[-60:]))
            found = json.loads(line)
        if "error" in found:
            raise SparkError(found["error"])
        return found["ok"]

    def ask(self, do: str, *, within: float = PATIENCE, **request: Any) -> Any:
        """One request, one answer."""
        self.send(do, **request)
        return self.answer(within)

    def close(self) -> None:
        """End its input, and it ends; killed if it does not."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.said.append("it did not end by itself\n")
        self.kill()

    def kill(self) -> None:
        """kill -9 to the driver, its JVM and its Python workers; all are gone afterwards."""
        family = self.family()
        for each in family:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue  # it went with the one before
        self._process.wait()
        psutil.wait_procs(family, 20)
        for thread in self._listening:
            thread.join(20)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def open_session(python: Path, **options: Any) -> Iterator[Session]:
    """A session that ends with the block."""
    session = Session(python, **options)
    try:
        yield session
    finally:
        session.close()
