"""Leaders are killed, moved, paused, cut off, out of room while clients write: nothing is lost or doubled.

Four idempotent producers of Kafka's write with acks=all, and one in lines of text.

Two rounds in the suite, a kill and a cut; five in `make faults`, one of each kind. KORVET_TEST_ROUNDS says how many,
KORVET_TEST_SEED which.
"""

import os
import random
import signal
import time
from itertools import cycle
from pathlib import Path

import pytest

from faults.full_disk import fill, make_room
from faults.redis.load import Load
from faults.replication.text_writer import TextWriter
from faults.replication.trio import Trio

ROUNDS = int(os.environ.get("KORVET_TEST_ROUNDS", "2"))
SEED = int(os.environ.get("KORVET_TEST_SEED", "20260101"))
PARTITIONS = 3
LONGER = 5.0  # seconds: than the lag timeout
# A client waits so long for a broker that says nothing: longer than a leader for a follower that is gone, and no longer
# than an operator here.
QUICK_CLIENTS = {"socket.timeout.ms": 5_000}


class Chaos:
    """The faults that happen to the brokers. `registry`: who leads the metadata log."""

    def __init__(self, trio: Trio, load: Load, chance: random.Random) -> None:
        self.trio = trio
        self.load = load
        self.chance = chance
        self.registry = 1

    def kill(self, broker: int) -> None:
        """kill -9; the others go on, and it comes back as a follower."""
        self.trio.brokers[broker].kill()
        self.replace(broker)
        self.load.wait_for(20)
        self.trio.start(broker)

    def pause(self, broker: int) -> None:
        """Stopped for longer than a follower may be silent; it does not know that when it wakes."""
        process = self.trio.brokers[broker].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(LONGER)
            self.replace(broker)
            self.load.wait_for(20)
        finally:
            process.send_signal(signal.SIGCONT)

    def cut(self, broker: int) -> None:
        """Cut off from the others, but not from clients, for longer than a follower may be silent."""
        links = self.trio.links
        assert links is not None
        links.cut(broker)
        try:
            time.sleep(LONGER)
            self.replace(broker)
            self.load.wait_for(20)
        finally:
            links.heal()

    def fill(self, broker: int) -> None:
        """The disk is full, until there is room again."""
        filler = self.trio.place / f"broker-{broker}" / "filler"
        filler.touch()
        fill(filler)
        try:
            time.sleep(LONGER)
            self.replace(broker)
            self.load.wait_for(20)
        finally:
            make_room(filler)

    def move(self, broker: int) -> None:
        """Everything that the broker leads is led by others, while it lives."""
        self.replace(broker)
        self.load.wait_for(20)

    def replace(self, broker: int) -> None:
        """Have others lead what this one leads."""
        self.trio.away = self.trio.brokers[broker]
        others = [one for one in (1, 2, 3) if one != broker]
        if self.registry == broker:
            first = self.chance.choice(others)
            self.registry = self.trio.appoint_registry([first, *(one for one in others if one != first)])
        for index, found in self.trio.describe("load").items():
            if found.leader in (broker, -1):
                self.trio.appoint("load", index, self.chance.choice(others))


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_nothing_that_was_acknowledged_is_lost(disks: Path) -> None:
    chance = random.Random(SEED)
    with Trio(disks, links=True) as trio:
        trio.create("load", PARTITIONS)
        load = Load(trio.bootstrap, partitions=PARTITIONS, names=("one", "two", "three", "four"), **QUICK_CLIENTS)
        text = TextWriter(load, list(trio.texts.values()))
        load.writers.append(text)
        with load.running():
            chaos = Chaos(trio, load, chance)
            kinds = cycle((chaos.kill, chaos.cut, chaos.pause, chaos.fill, chaos.move))
            print(f"seed {SEED}")
            for number in range(ROUNDS):
                load.wait_for(20)
                what, broker = next(kinds), chance.choice((1, 2, 3))
                began = time.monotonic()
                print(f"round {number}: {what.__name__} {broker}", end=" ", flush=True)
                what(broker)
                print(f"{time.monotonic() - began:.0f} s", end=" ", flush=True)
                trio.wait_for("load", lambda one: one.leader > 0 and len(one.isrs) == 3)
                print(f"{time.monotonic() - began:.0f} s", flush=True)
            load.wait_for(20)
        assert load.check(trio.brokers[1].port) == set()
        total = sum(writer.sent for writer in load.writers)
    print(f"{ROUNDS} rounds, {total:,} records, {len(text.refusals)} answers to the text producer were refusals")
