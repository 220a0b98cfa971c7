"""The drivers of the foreign clients: one table, how each is built once, and how one is asked.

A driver is a program that speaks JSON lines (clients/README.md). It lives in clients/ with its pinned dependencies.
"""

import base64
import fcntl
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from requirement import missing

CLIENTS = Path(__file__).with_name("clients")
CACHE = Path(__file__).parents[2] / ".cache" / "compat"
PATIENCE = 120.0  # a driver gives up by itself after 30 to 90 s, once it has started


class Driver(NamedTuple):
    """How a client's driver is built and run.

    `folder`: below clients/. `build`: a shell line, run once in a copy of the folder, in which `run` is run as well; ""
    if there is nothing to build. `needs`: programs without which the client's tests are skipped. `lock`: a file of pins
    that lies elsewhere, copied into the folder as requirements.txt.
    """

    folder: str
    run: tuple[str, ...]
    build: str = ""
    needs: tuple[str, ...] = ()
    lock: Path | None = None


def _python(name: str, *needs: str) -> Driver:
    """A driver in Python shares the tests' interpreter; its pins are in pyproject.toml."""
    return Driver(name, (sys.executable, "-m", f"compat.clients.{name}"), needs=needs)


def _java(version: str) -> Driver:
    """One source, compiled against the client of each version."""
    run = ("java", "@options", "-XX:SharedArchiveFile=driver.jsa", "Driver")
    return Driver("java", run, f"bash build.sh {version}", ("java", "javac", "mvn"))


def _go(name: str) -> Driver:
    return Driver(name, ("./driver",), "go build -buildvcs=false -o driver .", ("go",))


DRIVERS: dict[str, Driver] = {
    "confluent": _python("confluent"),
    "kafka_python": _python("kafka_python"),
    "aiokafka": _python("aiokafka"),
    "kcat": _python("kcat", "kcat"),
    "java_39": _java("3.9"),
    "java_41": _java("4.1"),
    "sarama": _go("sarama"),
    "franz_go": _go("franz_go"),
    "kafkajs": Driver("kafkajs", ("node", "driver.js"), "npm ci --no-audit --no-fund", ("node", "npm")),
}

_JARS = "mvn -B -q -f pom.xml dependency:copy-dependencies -DoutputDirectory=lib"
_JVM = ("java", "-XX:TieredStopAtLevel=1", "-cp", ".:lib/*")
# Those of Kafka 0.7 are asked otherwise (legacy/test_clients.py).
LEGACY_DRIVERS: dict[str, Driver] = {
    "jafka": Driver("jafka", (*_JVM, "Member"), f"{_JARS}; javac -nowarn -cp 'lib/*' Member.java", ("java", "mvn")),
    "brod": Driver(
        "brod",
        (*_JVM, "-Dpython.path=brod-0.4.3", "org.python.util.jython", "driver.jy"),
        f"{_JARS}; {sys.executable} -m pip download -q --no-deps --no-binary :all: --require-hashes "
        "-r requirements.txt; tar xzf brod-0.4.3.tar.gz",
        ("java", "mvn"),
    ),
    "franz_kafka": Driver(
        "franz_kafka",
        ("node", "--no-deprecation", "driver.js"),
        "npm ci --omit=optional --no-audit --no-fund --ignore-scripts",
        ("node", "npm"),
    ),
    "node_07": Driver(
        "node_07", ("node", "driver.js"), "npm ci --no-audit --no-fund --ignore-scripts", ("node", "npm")
    ),
}
# Programs over Kafka, that no JSON lines are spoken with (tools/): the first argument is the class, or the file.
PROGRAMS: dict[str, Driver] = {
    "java_programs": Driver(
        "java_programs",
        ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512M", "-cp", ".:lib/*"),
        f"{_JARS} -DincludeScope=runtime; sha256sum --check --quiet --strict jars.sha256; "
        "javac -cp 'lib/*' Counts.java",
        ("java", "javac", "mvn"),
    ),
    "python_programs": Driver(
        "python_programs",
        ("env/bin/python",),
        f"{sys.executable} -m venv env; env/bin/pip install --quiet --require-hashes --requirement requirements.txt",
        lock=CLIENTS.parents[2] / "requirements" / "tools.txt",
    ),
}


class DriverError(Exception):
    """The client's answer: Kafka's name of the error, or the client's words."""


class Unsupported(DriverError):
    """The client has no such feature at all."""


def command(name: str, *arguments: str) -> tuple[list[str], Path]:
    """The command that runs a driver, and the directory to run it in; built if it is not yet."""
    driver = (DRIVERS | LEGACY_DRIVERS | PROGRAMS)[name]
    for tool in driver.needs:
        if shutil.which(tool) is None:
            missing(f"{tool} is not installed on this machine")
    return [*driver.run, *arguments], _built(name, driver) if driver.build else CLIENTS.parents[1]


def _built(name: str, driver: Driver) -> Path:
    """The directory with the built driver, which only the first caller builds."""
    source = CLIENTS / driver.folder
    place = CACHE / f"{name}-{_digest(source, driver)}"
    complete = place / "complete"  # written last: a place without it was interrupted halfway
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(source, place)
            if driver.lock is not None:
                shutil.copy(driver.lock, place / "requirements.txt")
            done = subprocess.run(["bash", "-euc", driver.build], cwd=place, capture_output=True, text=True)
            if done.returncode:
                missing(f"the driver of {name} cannot be built:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
            complete.touch()
    return place


def build_all(names: Iterable[str]) -> None:
    """Build every driver that can be built here: what it takes on a busy machine would be more than a test's time."""
    for name in names:
        try:
            command(name)
        except (pytest.skip.Exception, pytest.fail.Exception) as error:
            print(f"{name}: {error}")  # its tests say it again


def _digest(source: Path, driver: Driver) -> str:
    """A digest of the sources, the pins and the way to build."""
    digest = hashlib.sha256(driver.build.encode())
    if driver.lock is not None:
        digest.update(driver.lock.read_bytes())
    for file in sorted(source.rglob("*")):
        if file.is_file():
            digest.update(str(file.relative_to(source)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def start(name: str, *arguments: str) -> "subprocess.Popen[str]":
    """A driver's process with pipes for its three streams."""
    line, place = command(name, *arguments)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(line, cwd=place, text=True, env=environment, **pipes)  # type: ignore[call-overload]


class Session:
    """A driver that serves: asked one thing after the other. `errors`: what it said for people."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self.errors: list[str] = []
        self._answers: queue.Queue[str] = queue.Queue()
        self._process = start(name, "serve", bootstrap)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._listening = [
            threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self.errors.extend, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._listening:
            thread.start()

    def _listen(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The driver's `ok`. Raises DriverError with its `error`, or when it has ended or says nothing at all."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=PATIENCE)
        except (queue.Empty, BrokenPipeError):
            line = ""
        if not line:
            self.close()
            raise DriverError(f"the driver of {self.name} did not answer {do}:\n" + "".join(self.errors[-30:]))
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise (Unsupported if answer["error"] == "unsupported" else DriverError)(answer["error"])
        found: dict[str, Any] = answer["ok"]
        return found

    def close(self) -> None:
        """End its input, and it ends; killed if it does not."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                self.errors.append("it ended before its input did\n")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._listening:
            thread.join(10)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def serve(name: str, bootstrap: str) -> Iterator[Session]:
    """A session that ends with the block."""
    session = Session(name, bootstrap)
    try:
        yield session
    finally:
        session.close()


def pack(data: bytes | None) -> str | None:
    """Bytes as they are written in a line."""
    return None if data is None else base64.b64encode(data).decode()


def unpack(text: str | None) -> bytes | None:
    """The other way round."""
    return None if text is None else base64.b64decode(text)


if __name__ == "__main__":
    build_all(PROGRAMS if sys.argv[1:] == ["programs"] else (*DRIVERS, *LEGACY_DRIVERS))
