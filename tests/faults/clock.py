"""A process whose wall clock is moved while it runs."""

import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from requirement import require

HOUR = 3_600_000  # ms


def build_library(directory: Path) -> Path:
    """The environment that a process has to be started with."""
    library = directory / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([require("cc"), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


class Clock:
    """The wall clock of a process that was started with `before`."""

    def __init__(self, library: Path, file: Path) -> None:
        self.before = ("env", f"LD_PRELOAD={library}", f"CLOCK_SHIFT={file}")
        self._file = file
        file.write_bytes(struct.pack("=q", 0))

    def shift(self, ms: int) -> None:
        """From now on it is so far from the truth."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", ms))

    @contextmanager
    def strobing(self, *shifts: int) -> Iterator[None]:
        """It has each of these shifts in turn, for 10 ms."""
        enough = threading.Event()

        def strobe() -> None:
            for shift in cycle(shifts):
                self.shift(shift)
                if enough.wait(0.01):
                    return

        thread = threading.Thread(target=strobe, daemon=True)
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join(60)
            self.shift(0)
