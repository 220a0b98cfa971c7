"""A process whose wall clock is moved while it runs."""

import asyncio
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from broker_process import BrokerProcess
from kafka_server import make_batch, run
from raw_connection import connect, find_leaders
from requirement import require

HOUR = 3_600_000  # ms
_PARTITIONS = 6  # of the topic that tells the time: each broker leads some


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


def read_wall(broker: BrokerProcess) -> int:
    """The broker's time in ms, as it stamps records."""
    told: list[int] = []

    async def ask() -> None:
        async with connect(broker.port) as client:
            await client.create("times", _PARTITIONS, message_timestamp_type="LogAppendTime")
            while broker.port not in (leaders := await find_leaders(client, "times")):
                await asyncio.sleep(0.02)
            row = await client.produce("times", make_batch(b"now"), index=leaders.index(broker.port))
            assert row["error_code"] == 0, row
            told.append(row["log_append_time_ms"])

    run(ask)
    return told[0]


def wait_for_strobe(broker: BrokerProcess) -> None:
    """Until two times that it tells are further apart than they can be, in steps of hours."""
    times, deadline = [read_wall(broker)], time.monotonic() + 240
    while max(times) - min(times) <= HOUR:
        assert time.monotonic() < deadline, times
        times.append(read_wall(broker))
