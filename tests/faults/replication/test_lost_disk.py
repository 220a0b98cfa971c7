"""Brokers come back with an empty directory: what was acknowledged is not lost, nor given away by what we advise.

Two of three brokers are down at once under load, and one of the two lost its disk. The third had been out of sync: what
was acknowledged meanwhile, only the two had, and what says so (who is in sync) was in their copies of the metadata log
alone. One of the two disks is whole: nothing that was acknowledged may be lost.
"""

import re
import shlex
import shutil
import signal
import threading
import time
from pathlib import Path

from faults.redis.load import Load
from faults.replication.trio import PATIENCE, Trio

PARTITIONS = 2


def test_nothing_is_lost_with_one_of_two_disks(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("load", PARTITIONS)
        for index in range(PARTITIONS):
            trio.appoint("load", index, 1)
        load = Load(trio.bootstrap, partitions=PARTITIONS, names=("one", "two"))
        with load.running():
            load.wait_for(20)
            late = trio.brokers[3].process
            assert late is not None
            late.send_signal(signal.SIGSTOP)
            try:
                trio.away = trio.brokers[3]
                trio.wait_for("load", lambda one: sorted(one.isrs) == [1, 2])
                load.wait_for(100)
                for broker in (1, 2):
                    trio.brokers[broker].kill()
            finally:
                late.send_signal(signal.SIGCONT)
            shutil.rmtree(tmp_path / "broker-2" / "data")
            returning = threading.Thread(target=trio.start, args=(2,))
            returning.start()  # it is ready when the metadata log has a leader
            trio.away = None
            refuse_registry(trio, 3)
            trio.start(1)
            returning.join(PATIENCE)
            assert not returning.is_alive(), trio.tell()
            trio.wait_for("load", lambda one: one.leader > 0 and len(one.isrs) == 3)
            load.wait_for(20)
        assert load.check(trio.brokers[1].port) == set()


def refuse_registry(trio: Trio, broker: int) -> None:
    """Name a broker for `@registry` until it says that the one with the empty directory does not count."""
    deadline = time.monotonic() + PATIENCE
    while True:
        done = trio.run_once("partition", "lead", "@registry", "0", "--broker", str(broker))
        assert done.returncode != 0, "it leads, and does not know who was in sync"
        if "broker 2 began with an empty directory, and does not count" in " ".join(done.stderr.split()):
            return
        assert time.monotonic() < deadline, done.stderr + trio.tell()
        time.sleep(0.1)


def test_what_is_advised_loses_nothing(tmp_path: Path) -> None:
    """The leader comes back with nothing: another broker is advised, by all that tells an operator what to do."""
    with Trio(tmp_path) as trio:
        trio.create("orders", 1)
        trio.appoint("orders", 0, 2)
        trio.move_registry(1)
        load = Load(trio.bootstrap, "orders", 1, ("one",))
        with load.running():
            load.wait_for(20)
            trio.brokers[2].kill()
            shutil.rmtree(tmp_path / "broker-2" / "data")
            trio.start(2)
            trio.wait_for("orders", lambda one: one.leader == -1)
            appoint = ("partition", "lead", "orders", "0", "--broker", "2")
            said = " ".join(trio.run_once(*appoint).stderr.split())
            another = "name that: korvet-fast partition lead orders 0 --broker "
            assert another in said
            assert not said.partition(another)[2].startswith("2")
            assert "--unclean" not in said
            assert re.search(r"broker 2 lacks \d+ records of orders 0", trio.run_once(*appoint, "--unclean").stderr)
            found = re.search(
                r"korvet-fast (partition lead orders 0 --broker [13]) --b", trio.run_once("cluster", "info").stdout
            )
            assert found is not None
            trio.run(*shlex.split(found[1]))
            load.wait_for(20)
        assert load.check(trio.brokers[1].port) == set()
