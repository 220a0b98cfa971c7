"""The JVM of a command's Spark session: it starts without noise and ends with the command, however that ends.

`SparkSession` would start it too, but leaves it behind when a signal comes before it answers, and says "Java gateway
process exited" for every reason that Java has not to start.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from korvet_fast.cli.signals import asked_to_end
from korvet_fast.printable import printable

LOOK = 0.05  # seconds between two looks whether the JVM is ready
PATIENCE = 5.0  # seconds for the JVM to remove its temporary files
KEPT = 20  # lines of the JVM for the sentence about a failed start
MEMORY = "spark.driver.memory"
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"  # PySpark connects to this JVM instead of starting one

# Spark's greetings: nobody can act on them.
GREETING = re.compile(
    r"WARNING: Using incubator modules: jdk\.incubator\.vector"
    r"|NOTE: Picked up JDK_JAVA_OPTIONS: "
    r"|Using Spark's default log4j profile: "
    r"|Setting default log level to "
    r"|To adjust logging level use "
    r"|Setting Spark log level to "
    r"|.* WARN NativeCodeLoader: Unable to load native-hadoop library "
    r"|.* WARN Utils: (Your hostname, .* resolves to a loopback address|Set SPARK_LOCAL_IP if you need to bind to )"
)


@contextmanager
def running_java(settings: Mapping[str, str]) -> Iterator[None]:
    """A JVM that the block's Spark session uses, and that is gone after the block.

    `settings`: Spark's, for the start of the JVM. Raises `click.ClickException` with a sentence if it does not start,
    and `KeyboardInterrupt` for Ctrl-C or SIGTERM meanwhile.
    """
    if settings["spark.master"].startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first python3 of the path
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java = JavaProcess(settings)
    try:
        port, secret = java.start()
        os.environ |= {PORT: str(port), SECRET: secret}
        try:
            yield
        finally:
            del os.environ[PORT], os.environ[SECRET]
            _forget_gateway()
    finally:
        java.end()


class JavaProcess:
    """`spark-submit pyspark-shell`, as PySpark runs it, in a process group of its own: Ctrl-C is for the command."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self._said: deque[str] = deque(maxlen=KEPT)  # before it was ready
        self._ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> tuple[int, str]:
        """Start it; its port and secret. Raises as `running_java` does."""
        from pyspark.find_spark_home import _find_spark_home

        command = [f"{_find_spark_home()}/bin/spark-submit"]
        for name, value in self._settings.items():
            command += ["--conf", f"{name}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        with tempfile.TemporaryDirectory() as directory, asked_to_end() as asked:
            note = Path(directory) / "gateway"
            self._process = subprocess.Popen(  # noqa: S603 (Spark's own program)
                command,
                stdin=subprocess.PIPE,  # the JVM ends when this is closed, even by kill -9 of the command
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(note), "SPARK_CONNECT_MODE": "0"},
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._listener.start()
            while not note.exists():
                if asked.is_set():
                    raise KeyboardInterrupt
                if self._process.poll() is not None:
                    self._listener.join(PATIENCE)
                    raise click.ClickException(explain_start("".join(self._said), self._settings))
                time.sleep(LOOK)
            self._ready.set()
            return _read_note(note.read_bytes())

    def end(self) -> None:
        """End it and wait until it is gone; killed if it takes too long."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        for which in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):  # the whole group is gone
                os.killpg(process.pid, which)
            try:
                process.wait(PATIENCE)
                break
            except subprocess.TimeoutExpired:
                continue
        self._listener.join(PATIENCE)

    def _listen(self) -> None:
        """Pass on what the JVM and its workers print once it is ready, without Spark's greetings."""
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            if GREETING.match(line):
                continue
            self._said.append(line)
            if self._ready.is_set():
                sys.stderr.writelines(self._said)
                sys.stderr.flush()
                self._said.clear()


def explain_start(said: str, settings: Mapping[str, str]) -> str:
    """Why Java did not start, in a sentence. `said`: what it printed."""
    size = re.search(r"^(?:Invalid|Too small) (?:initial|maximum)? ?heap(?: size)?.*$", said, re.MULTILINE)
    if size is not None:
        given = settings.get(MEMORY, "unset")
        return f"{MEMORY} is {given!r}, and Java says: {size[0]!r}; write a size such as 512m or 4g"
    if not said or "JAVA_HOME" in said or "UnsupportedClassVersionError" in said or "java: not found" in said:
        return "Spark did not start: it needs Java 17 or newer, as `java` on the path or in JAVA_HOME"
    return f"Spark did not start: {printable(said.splitlines()[-1])}"


def _read_note(note: bytes) -> tuple[int, str]:
    """What the JVM writes when it is ready: the port, the length of the secret, the secret."""
    length = int.from_bytes(note[4:8], "big")
    return int.from_bytes(note[:4], "big"), note[8 : 8 + length].decode()


def _forget_gateway() -> None:
    """Let PySpark start with another JVM next time, in this process."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
