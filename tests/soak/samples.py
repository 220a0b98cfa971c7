"""What the brokers of a soak take, once a second: resident memory and descriptors."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil

from client_thread import ClientThread
from soak.worlds import World

_EVERY = 1.0  # seconds
QUIET = 5  # connections more than before that prove nothing: a client may be about to close them


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
    for number, broker in enumerate(world.brokers):
        running = broker.process
        if running is None:
            continue
        try:
            process = psutil.Process(running.pid)
            with process.oneshot():
                memory, descriptors = process.memory_info().rss / 2**20, process.num_fds()
        except psutil.NoSuchProcess:
            continue
        found.append(Sample(time.monotonic(), f"{world.name} {number}", running.pid, memory, descriptors))
    return found


def find_leaks(ends: Sequence[Sample]) -> list[str]:
    """Processes that had more descriptors after each chapter than after the first, in sentences.

    `ends`: samples from between chapters, when no client is connected.
    """
    leaks = []
    for pid in dict.fromkeys(sample.pid for sample in ends):
        counts = [sample.descriptors for sample in ends if sample.pid == pid]
        if len(counts) > 1 and min(counts[1:]) > counts[0] + QUIET:
            broker = next(sample.broker for sample in ends if sample.pid == pid)
            leaks.append(f"broker {broker} (process {pid}) had {counts} descriptors between the chapters")
    return leaks
