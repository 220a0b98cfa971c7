"""Two of three brokers are down at once under load, and one of them comes back with an empty directory.

The third had been out of sync: what was acknowledged meanwhile, only the two had, and what says so (who is in sync) was
in their copies of the metadata log alone. One of the two disks is whole: nothing that was acknowledged may be lost.
"""

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
