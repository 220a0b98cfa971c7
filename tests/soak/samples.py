"""What the brokers of a soak take, once a second: resident memory and descriptors."""

import time
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import NamedTuple

import psutil

from client_thread import ClientThread
from soak.worlds import World

_EVERY = 1.0  # seconds
# More than before by so much proves nothing: a client may be about to close a connection; pages of memory are kept.
ALLOWED = {"descriptors": 5, "memory": 8}


class Sample(NamedTuple):
    """Of one process. `at`: monotonic seconds; `memory`: resident, in MiB."""

    at: float
    broker: str
    pid: int
    memory: float
    descriptors: int


class Sampler(ClientThread):
    """`samples` of all brokers that run."""

    def __init__(self, worlds: Sequence[World]) -> None:
        super().__init__("sampler")
        self.samples: list[Sample] = []
        self._worlds = worlds

    def work(self) -> None:
        while not self.enough.wait(_EVERY):
            for world in self._worlds:
                self.samples += take(world)


def take(world: World) -> list[Sample]:
    """A sample of each broker of a world; one that is dead has none."""
    found = []
    for name, broker in zip(world.names, world.brokers, strict=True):
        running = broker.process
        if running is None:
            continue
        try:
            process = psutil.Process(running.pid)
            with process.oneshot():
                memory, descriptors = process.memory_info().rss / 2**20, process.num_fds()
        except psutil.NoSuchProcess:
            continue
        found.append(Sample(time.monotonic(), name, running.pid, memory, descriptors))
    return found


def find_leaks(ends: Sequence[Sample], brokers: Iterable[str]) -> list[str]:
    """What the brokers kept more and more of from chapter to chapter, in sentences; also, whom that cannot be said of.

    `ends`: samples from between chapters, when no client is connected. What goes again now and then is no leak.
    """
    found = []
    for broker in brokers:
        lives = [
            [sample for sample in ends if (sample.broker, sample.pid) == (broker, pid)]
            for pid in dict.fromkeys(sample.pid for sample in ends if sample.broker == broker)
        ]
        whole = [life for life in lives if len(life) > 1]
        if not whole:
            found.append(f"no process of broker {broker} lived through two chapters: its leaks would not be seen")
        for life in whole:
            for what, most in ALLOWED.items():
                amounts = [getattr(sample, what) for sample in life]
                early, late = amounts[: len(amounts) // 2], amounts[len(amounts) // 2 :]
                if median_low(late) > median_low(early) + most:
                    told = ", ".join(f"{amount:.0f}" for amount in amounts)
                    found.append(f"broker {broker} (process {life[0].pid}) had {told} {what} between the chapters")
    return found
