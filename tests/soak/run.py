"""A soak: `make soak HOURS=1 [SEED=...]`. Both stores, all doors, groups and Spark at work; faults happen at random.

It is played in chapters, in one world after the other: new topics, clients, faults; then what was sent is held against
what is there, and against what Spark has read and written, and the topics are deleted. Brokers are killed and stopped
in the first quarter of the time alone, and in the first chapter of each world: after that each process lives on, and
between chapters its descriptors and memory are measured. Ends badly for anything lost, doubled, out of order, left open
or kept in memory; the picture, results/soak.png, is for people.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AdminClient

from faults.redis.committer import Committer
from faults.redis.load import Load, create_topic, read_log
from faults.redis.records import GROUPS
from faults.redis.records import create_topic as create_probed
from faults.replication.text_writer import TextWriter
from journal import Sent
from soak.clients import GroupMember, OldClient, Probe
from soak.picture import Happened, draw
from soak.samples import Sample, Sampler, find_leaks, take
from soak.spark_stream import SparkStream
from soak.worlds import World, open_worlds

PICTURE = Path(__file__).parents[2] / "results" / "soak.png"
CHAPTER = 60.0  # seconds
PARTITIONS = 4
SETTLED = 3.0  # seconds until the connections of clients that have ended are closed


class Soak:
    """What happens, and what was seen of it."""

    def __init__(self, chance: random.Random, place: Path) -> None:
        self.chance, self.place = chance, place
        self.faults: list[Happened] = []
        self.ends: list[Sample] = []  # between the chapters
        self.acknowledged = 0

    def play_chapter(self, world: World, number: int, seconds: float, *, restarts: bool) -> None:
        """`restarts`: processes of brokers end as well. Raises `AssertionError` for whatever must not be."""
        topic, old_topic, copy = (f"{name}-{number}" for name in ("chapter", "old", "copy"))
        seen = set[Sent]()
        create_topic(world.brokers[0].bootstrap, topic, PARTITIONS)
        create_topic(world.brokers[0].bootstrap, copy, PARTITIONS)
        create_topic(world.brokers[0].bootstrap, old_topic, 1, storage_layout="legacy")
        load = Load(world.bootstrap, topic, PARTITIONS)
        load.writers.append(TextWriter(load, world.texts))
        old = OldClient(world.legacies[0], old_topic) if len(world.brokers) == 1 else None  # it knows one broker
        committer = Committer(world.brokers, [f"{group}-{number}" for group in GROUPS])
        members = [GroupMember(world.bootstrap, topic, seen) for _ in range(2)]
        spark = SparkStream(world.bootstrap, topic, copy, self.place / topic)
        faults = world.faults | (world.restarts if restarts else {})
        with ExitStack() as stack:
            for client in (*members, committer, spark, *([old] if old else [])):
                stack.enter_context(client)
            with load.running():
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    load.wait_for(20)
                    self.make_fault(world.name, faults | ({"kill -9 Spark": spark.kill} if spark.is_well else {}))
                load.wait_for(20)
            wait_until_read(load, seen)
        assert load.check(world.brokers[0].port) == set()
        committer.check()
        log = read_log(world.brokers[0].port, topic)
        read = spark.check(log)
        doubled = spark.check_copy(log, read_log(world.brokers[0].port, copy))
        written = old.check() if old else 0
        admin = AdminClient({"bootstrap.servers": world.bootstrap})
        for future in admin.delete_topics([topic, old_topic, copy]).values():
            future.result(120)
        self.acknowledged += len(load.history.acknowledged)
        print(f"  {len(load.history.acknowledged):,} records acknowledged, none lost; {written:,} of the old protocol")
        print(f"  Spark: each of {read:,} records read once and written, {doubled:,} of them more than once")
        print(f"  Spark: {spark.queries} queries; {spark.deaths} drivers were killed")
        for failure in spark.failures:
            print(f"    ended a query: {failure.splitlines()[0]}")
        time.sleep(SETTLED)
        self.ends += take(world)

    def make_fault(self, world: str, faults: Mapping[str, Callable[[], None]]) -> None:
        """One of these, by chance."""
        name = self.chance.choice(sorted(faults))
        self.faults.append(Happened(time.monotonic(), world, name))
        print(f"  {name}", flush=True)
        faults[name]()


def wait_until_read(load: Load, seen: set[Sent]) -> None:
    """Until the group has read all that was acknowledged."""
    deadline = time.monotonic() + 240
    while left := load.history.acknowledged.keys() - seen:
        assert time.monotonic() < deadline, f"the group never got {len(left)} records, such as {min(left)}"
        time.sleep(0.1)


def main(hours: float, seed: int) -> int:
    """Returns the exit code."""
    print(f"{hours} hours, seed {seed}", flush=True)
    seconds = 3600 * hours
    chapter, number = min(CHAPTER, seconds / 4), 0
    with tempfile.TemporaryDirectory(prefix="korvet-soak-") as place, open_worlds(Path(place)) as worlds:
        soak = Soak(random.Random(seed), Path(place) / "spark")
        for world in worlds:
            create_probed(world.brokers[0])
        probes = {world.name: Probe(world.brokers) for world in worlds}
        sampler, begin = Sampler(worlds), time.monotonic()
        try:
            with ExitStack() as stack:
                for client in (sampler, *probes.values()):
                    stack.enter_context(client)
                while time.monotonic() < begin + seconds:
                    world = worlds[number % len(worlds)]
                    passed = time.monotonic() - begin
                    print(f"chapter {number}, {world.name}, {passed:.0f} s", flush=True)
                    restarts = passed < seconds / 4 or number < len(worlds)
                    soak.play_chapter(world, number, chapter, restarts=restarts)
                    number += 1
        finally:
            PICTURE.parent.mkdir(exist_ok=True)
            waits = {name: probe.waits for name, probe in probes.items()}
            draw(PICTURE, f"{hours} hours, seed {seed}", begin, waits, sampler.samples, soak.faults)
            print(f"the picture: {PICTURE}")
    leaks = find_leaks(soak.ends, [name for world in worlds for name in world.names])
    print("\n".join(leaks) or "no descriptor was left open, and memory stayed flat")
    print(f"{number} chapters, {len(soak.faults)} faults, {soak.acknowledged:,} records acknowledged, none lost")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)))
