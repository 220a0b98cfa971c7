"""The examples of README and docs/ as their readers would type them: blocks of a page, played one after another.

A block of `sh` is run by bash; of `console` the lines after `$ `; of `python` as a program, or by pytest if it has a
test. A command that serves goes on beside those that follow, until another one takes one of its ports. A block of
`text` right after one of these is what it prints.
"""

import ast
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Self

ROOT = Path(__file__).parents[1]
RUNNABLE = ("sh", "console", "python")
READY_WITHIN = 100.0  # seconds: a busy machine may take long
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SERVES = re.compile(r"^(\w+=\S+ )*korvet-fast serve\b")

# Blocks that no test runs, by page and the beginning of their first line, and why.
NOT_RUN = {
    ("README.md", "make install"): "compiles the package: `make first-record` does it in a new clone",
    ("README.md", "make demo"): "tests/examples/test_flights.py runs the demo with fewer flights; make test runs this",
    ("CONTRIBUTING.md", "make develop"): "builds this project and runs these tests",
    ("docs/getting-started.md", "make install"): "compiles the package, as in README.md",
    ("docs/spark-pipeline.md", "make wheel"): "compiles the package, and installs 450 MB of PySpark",
    ("docs/releasing.md", "make release"): "compiles for many minutes; whoever releases runs it, and it checks itself",
    ("docs/releasing.md", "rustup target add"): "fetches a compiler and a linker",
    ("docs/legacy.md", "korvet-fast import-07"): "needs Kafka 0.7's files: tests/unit/cli/test_import_07.py makes such",
    ("docs/producer.md", "async with AsyncProducer("): (
        "needs a broker with transactions: tests/compat/test_transactions_kafka.py has Apache Kafka"
    ),
    **dict.fromkeys(
        (
            ("docs/spark-cluster.md", "pip install --target packages"),
            ("docs/spark-cluster.md", "export PYTHONPATH=packages"),
            ("docs/spark-cluster.md", "from pyspark.sql import SparkSession"),
        ),
        "needs a cluster: tests/compat/spark/test_cluster.py does each step on a master and two workers",
    ),
}


class Block(NamedTuple):
    """A piece of code of a page. `printed`: the block of `text` right behind it."""

    page: str
    language: str
    text: str
    printed: str | None

    @property
    def reason(self) -> str | None:
        """Why it is not run, if it is not."""
        reasons = (NOT_RUN[page, line] for page, line in NOT_RUN if page == self.page and self.text.startswith(line))
        return next(reasons, None)


def read_blocks(page: str) -> list[Block]:
    """All blocks of a page, in order. `page`: its path below the project's root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        indent, language, body = fence.groups()
        body = "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
        behind = FENCE.match(text, fence.end() + 2) if text[fence.end() : fence.end() + 2] == "\n\n" else None
        found.append(Block(page, language, body, behind[3] if behind and behind[2] == "text" else None))
    return found


def examples(page: str, *languages: str) -> list[Block]:
    """The blocks of a page that are to be run, of these languages or of all."""
    wanted = languages or RUNNABLE
    return [block for block in read_blocks(page) if block.language in wanted and block.reason is None]


def without_times(printed: str) -> list[str]:
    """The lines printed, without what differs from run to run."""
    return re.sub(r"\b[0-9]{13}\b", "TIME", printed).rstrip().splitlines()


class Server(NamedTuple):
    process: "subprocess.Popen[bytes]"
    ports: frozenset[str]
    log: Path

    def stop(self) -> None:
        """SIGTERM; it must end well."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) == 0, self.log.read_text()


class Reader:
    """Somebody who types the blocks of a page, in a directory of his own; leaving it stops what still serves."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where this Python has korvet-fast installed
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "KORVET"))}
        self._environment = {**kept, "PATH": path}
        self._servers: list[Server] = []

    def run(self, block: Block) -> str:
        """Run a block and give what it printed; that has to be what the page says."""
        if block.language == "python":
            printed = self._python(block.text)
        elif block.language == "console":
            printed = self._console(block.text)
        else:
            printed = self._shell(block.text)
        if block.printed is not None:
            assert without_times(printed) == without_times(block.printed), printed
        return printed

    def shell(self, script: str) -> str:
        """What these commands print, in the same place."""
        return self._run(["bash", "-euo", "pipefail", "-c", script])

    def stop(self, port: str) -> None:
        """Stop the broker that serves a port."""
        (server,) = [server for server in self._servers if port in server.ports]
        self._servers.remove(server)
        server.stop()

    def _console(self, text: str) -> str:
        printed = []
        for command in text.removeprefix("$ ").split("\n$ "):
            line, _, shown = command.partition("\n")
            if SERVES.match(line):
                self._serve([line.removesuffix(" &")])
                log = self._servers[-1].log.read_text()
                assert all(said.split(maxsplit=2)[2] in log for said in shown.splitlines()), log
                continue
            printed.append(self._shell(line + "\n"))
            assert without_times(printed[-1]) == without_times(shown)
        return "".join(printed)

    def _shell(self, text: str) -> str:
        """Commands in order; brokers that are started one right after the other may wait for each other."""
        printed = ""
        commands = re.sub(r"\\\n\s*", "", text).splitlines()
        for serves, run in groupby(commands, lambda command: SERVES.match(command) is not None):
            if serves:
                self._serve(list(run))
                continue
            lines = list(run)
            for line in lines:
                if (given := re.fullmatch(r"([A-Z]+)=(\S+)", line)) is not None:
                    self._environment[given[1]] = given[2]  # for the commands of later blocks
            printed += self.shell("\n".join(lines))
        return printed

    def _python(self, text: str) -> str:
        file = self._directory / f"test_example_{len(list(self._directory.iterdir()))}.py"
        if "\ndef test_" in text:
            file.write_text(text)
            return self._run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name])
        if not _is_program(text):  # a piece of a coroutine
            body = "".join(f"    {line}" for line in text.splitlines(keepends=True))
            text = f"import asyncio\nasync def main():\n{body}\nasyncio.run(main())\n"
        file.write_text(text)
        return self._run([sys.executable, file.name])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def serve(self, command: str) -> None:
        """Start a broker, and wait until it is ready."""
        self._serve([command])

    def _serve(self, commands: list[str]) -> None:
        """Start brokers, and wait until all of them are ready."""
        started = []
        for command in commands:
            ports = frozenset(re.findall(r"--listen [\w+]+://[\w.]+:(\d+)", command)) or frozenset({"9092"})
            for port in ports & frozenset().union(*(server.ports for server in self._servers)):
                self.stop(port)
            log = self._directory / f"server-{time.monotonic_ns()}.log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    ["bash", "-c", f"exec env {command}"],
                    cwd=self._directory,
                    env=self._environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            started.append(Server(process, ports, log))
        self._servers += started
        for server in started:
            deadline = time.monotonic() + READY_WITHIN
            while "ready kafka" not in server.log.read_text():
                assert server.process.poll() is None, server.log.read_text()
                assert time.monotonic() < deadline, server.log.read_text()
                time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                while self._servers:
                    self._servers.pop().stop()
        finally:
            for server in self._servers:
                server.process.kill()
                server.process.wait()


def _is_program(text: str) -> bool:
    """Whether it is Python by itself, and not lines of a coroutine."""
    try:
        compile(ast.parse(text), "example", "exec")
    except SyntaxError:
        return False
    return True


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Where tests run side by side, one of them at a time: the examples have fixed ports. `place`: of a lock file."""
    with (place / "documents.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield
