"""Workers over one directory, killed one by one and all together: nothing is lost, doubled or out of order.

KORVET_TEST_KILLS says how often (default 3); `make kill-loop` sets it to 50 for the test with a group.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from compat.group_scene import Scene, play
from faults.conftest import Flushes
from faults.full_disk import fill, make_room
from faults.redis.load import Load, create_topic
from faults.workers import WITHIN, Workers
from member_history import check_members

KILLS = int(os.environ.get("KORVET_TEST_KILLS", "3"))
# Silent for a second and a half: the machine that runs this may be slow, and a false alarm is no error.
QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500")
PARTITIONS = 6
SESSION = 90_000  # ms, of members of groups: longer than anything stands still here
# None in librdkafka: up to 2.16.1 its threads lock each other out for good where a leader dies while the client asks it
# for the end of an epoch (confluentinc/librdkafka#5476), which one of three did in every second run of fifty kills.
MEMBERS = ("kafka_python", "aiokafka", "kafka_python")

pytestmark = pytest.mark.timeout(240 + 60 * KILLS)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    """Two workers that share the partitions of the topic `load`."""
    with Workers(tmp_path / "data", 2, *QUICK) as running:
        create_topic(running.bootstrap, "load", PARTITIONS)
        running.wait_for_leaders("load", 1, 2)
        yield running


def test_killed_workers_are_replaced(workers: Workers) -> None:
    """kill -9 of one or the other, be it the one that has the registry: it is back, and leads its part."""
    chance = random.Random(23)
    load = Load(workers.addresses, partitions=PARTITIONS)
    with load.running():
        for turn in range(KILLS):
            load.wait_for(100)
            time.sleep(chance.uniform(0, 0.2))
            workers.signal_worker(1 + turn % 2)
            load.wait_for(100)
            workers.pid_of(1 + turn % 2)
            workers.wait_for_leaders("load", 1, 2)
    assert load.check(workers.port) == set()
    # A worker that a busy machine lets stand still is killed by the parent.
    assert count(workers, "has ended (SIGKILL)") == KILLS + count(workers, "gave no sign of life")


def count(workers: Workers, words: str) -> int:
    return sum(words in line for line in workers.log)


def test_a_killed_parent_takes_its_workers_along(workers: Workers) -> None:
    """They end cleanly, and another start finds all that was acknowledged."""
    load = Load(workers.addresses, partitions=PARTITIONS)
    with load.running():
        for _ in range(max(1, KILLS // 2)):
            load.wait_for(100)
            workers.kill()  # returns when the last worker has ended
            workers.start()
            workers.wait_for_leaders("load", 1, 2)
        load.wait_for(100)
    assert load.check(workers.port) == set()
    assert any("the parent of the workers is gone" in line for line in workers.log)


def test_kills_of_workers_and_of_their_parent_cost_a_group_nothing(workers: Workers) -> None:
    """kill -9 of the parent, of the one worker, of the other, under four idempotent producers and a group of three."""
    chance = random.Random(41)
    load = Load(workers.addresses, partitions=PARTITIONS, names=("one", "two", "three", "four"))
    with play(workers, "read", **{"enable.idempotence": True}) as scene:
        scene.bootstrap = workers.addresses
        members = [scene.member(client, protocol="classic", session=30_000) for client in MEMBERS]
        scene.wait_shared(*members)
        with load.running():
            for turn in range(KILLS):
                load.wait_for(100)
                scene.send(120)  # read and committed while the kill comes
                time.sleep(chance.uniform(0, 0.2))
                if turn % 3:
                    workers.signal_worker(turn % 3)
                    workers.pid_of(turn % 3)
                else:
                    workers.kill()
                    workers.start()
                workers.wait_for_leaders("load", 1, 2)
            load.wait_for(100)
        scene.wait_read()
        check_members(scene)
    assert load.check(workers.port) == set()


def test_whoever_deletes_the_locks_of_workers_lets_nobody_else_in(tmp_path: Path) -> None:
    """Each of three is killed after that, the one that has the registry too, then their parent; no other may begin."""
    data = tmp_path / "data"
    with Workers(data, 3, *QUICK) as workers:
        create_topic(workers.bootstrap, "load", PARTITIONS)
        workers.wait_for_leaders("load", 1, 2, 3)
        load = Load(workers.addresses, partitions=PARTITIONS)
        with load.running():
            for worker in (1, 2, 3):
                load.wait_for(100)
                delete_locks(data)
                workers.signal_worker(worker)
                workers.pid_of(worker)
                workers.wait_for_leaders("load", 1, 2, 3)
            for second in (Workers(data, 2), BrokerProcess(data)):
                with pytest.raises(AssertionError, match="is in use by a process that"):
                    second.start()
            load.wait_for(100)
            delete_locks(data)
            workers.kill()  # the parent
            workers.start()
            workers.wait_for_leaders("load", 1, 2, 3)
            load.wait_for(100)
        assert load.check(workers.port) == set()
        assert workers.stop() == 0


def delete_locks(data: Path) -> None:
    shutil.rmtree(data / "@workers", ignore_errors=True)  # it may be made anew meanwhile
    (data / ".lock").unlink(missing_ok=True)  # it is made by the next start


def test_a_worker_that_stands_still_is_killed(workers: Workers) -> None:
    """Nobody takes what it owns while it lives: the parent ends it."""
    load = Load(workers.addresses, partitions=PARTITIONS)
    with load.running():
        for worker in (1, 2):
            load.wait_for(100)
            before = workers.pid_of(worker)
            workers.signal_worker(worker, signal.SIGSTOP)
            deadline = time.monotonic() + WITHIN
            while before in workers.find_children():
                assert time.monotonic() < deadline, "it stands still, and is not killed"
                time.sleep(0.02)
            workers.pid_of(worker)
            workers.wait_for_leaders("load", 1, 2)
            load.wait_for(100)
    assert load.check(workers.port) == set()
    assert count(workers, "gave no sign of life") == count(workers, "has ended (SIGKILL)") >= 2


@pytest.mark.parametrize("worker", [1, 2])
def test_a_worker_killed_on_a_full_disk_is_back_when_there_is_room(small_disk: Path, worker: int) -> None:
    """Who takes over from it cannot be noted before; the other one goes on, whichever has the registry."""
    filler = small_disk / "filler"
    filler.write_bytes(bytes(1_500_000))
    with Workers(small_disk / "data", 2, *QUICK) as workers:
        create_topic(workers.bootstrap, "load", PARTITIONS)
        workers.wait_for_leaders("load", 1, 2)
        load = Load(workers.addresses, partitions=PARTITIONS)
        with load.running():
            load.wait_for(100)
            fill(filler)
            workers.wait_for_line("this broker cannot renew its registration")  # no heartbeat has room any more
            workers.signal_worker(worker)
            workers.wait_for_line(f"worker {worker} has ended (exit code 1): it starts again")
            make_room(filler)
            workers.wait_for_leaders("load", 1, 2)
            load.wait_for(100)
        assert load.check(workers.port) == set()
        assert workers.stop() == 0
    assert "Traceback" not in "".join(workers.log)


@contextmanager
def beside_a_group(workers: Workers, load: Load) -> Iterator[Scene]:
    """The load until the block ends, and a group of three: no member rebalances, all is read, and nothing is lost."""
    with play(workers, "read") as scene:
        scene.bootstrap = workers.addresses
        members = scene.gather("confluent", "kafka_python", "aiokafka", session=SESSION)
        scene.wait_shared(*members)
        before = [one.changes for one in members]
        with load.running():
            yield scene
        scene.wait_read()
        assert [one.changes for one in members] == before, scene.explain()
        check_members(scene)
    assert load.check(workers.port) == set()


def test_a_rolling_restart(tmp_path: Path) -> None:
    """SIGTERM of each of three in turn, which the parent starts again: a group does not even rebalance."""
    with Workers(tmp_path / "data", 3, *QUICK) as workers:
        create_topic(workers.bootstrap, "load", PARTITIONS)
        workers.wait_for_leaders("load", 1, 2, 3)
        load = Load(workers.addresses, partitions=PARTITIONS)
        with beside_a_group(workers, load) as scene:
            for turn in range(KILLS):
                scene.send(120)  # read and committed meanwhile
                load.wait_for(50)
                workers.signal_worker(1 + turn % 3, signal.SIGTERM)
                load.wait_for(50)
                workers.pid_of(1 + turn % 3)
                workers.wait_for_leaders("load", 1, 2, 3)
            load.wait_for(50)
        assert count(workers, "has ended (exit code 0)") == KILLS
        assert count(workers, "its state is gone") == 0, "each log was handed over in good order"
        assert workers.stop() == 0


def test_the_others_lead_before_a_dead_worker_is_started_again(tmp_path: Path) -> None:
    """The kernel tells that it is dead: nobody waits for its session to end, which takes ten minutes here."""
    with Workers(tmp_path / "data", 3, "broker.session.timeout.ms=600000") as workers:
        create_topic(workers.bootstrap, "load", PARTITIONS)
        workers.wait_for_leaders("load", 1, 2, 3)
        load = Load(workers.addresses, partitions=PARTITIONS)
        with load.running():
            for worker, left in ((3, (1, 2)), (1, (2, 3))):
                load.wait_for(50)
                workers.pause()  # the parent: it starts nothing
                workers.signal_worker(worker)
                workers.wait_for_leaders("load", *left)
                load.wait_for(50)
                workers.resume()
                workers.pid_of(worker)
                workers.wait_for_leaders("load", 1, 2, 3)
            load.wait_for(50)
        assert load.check(workers.port) == set()


@pytest.mark.parametrize("seconds", [1, 5, 40])
def test_the_disk_stands_still(tmp_path: Path, flushes: Flushes, seconds: int) -> None:
    """Shorter and longer than sessions, and than clients wait: all go on afterwards, and no worker is ended for it."""
    workers = Workers(tmp_path / "data", 2, QUICK[0], "broker.session.timeout.ms=4000")
    workers.before = flushes.before
    with workers:
        create_topic(workers.bootstrap, "load", PARTITIONS, durability="fsync")
        workers.wait_for_leaders("load", 1, 2)
        load = Load(workers.addresses, partitions=PARTITIONS)
        with beside_a_group(workers, load) as scene:
            load.wait_for(50)
            scene.send(300)
            flushes.hang()
            time.sleep(seconds)  # the fault itself
            flushes.heal()
            load.wait_for(50)
            workers.wait_for_leaders("load", 1, 2)
            scene.send()
            load.wait_for(50)
        assert count(workers, "has ended") == 0
        assert workers.stop() == 0


@pytest.mark.parametrize("seconds", [1, 5])
def test_all_processes_stand_still(workers: Workers, seconds: int) -> None:
    """As on a machine that sleeps: the parent, who slept too, takes nobody for silent."""
    load = Load(workers.addresses, partitions=PARTITIONS)
    with load.running():
        load.wait_for(50)
        workers.pause()
        for worker in (1, 2):
            workers.signal_worker(worker, signal.SIGSTOP)
        time.sleep(seconds)  # the fault itself
        for worker in (1, 2):
            workers.signal_worker(worker, signal.SIGCONT)
        workers.resume()
        load.wait_for(50)
        workers.wait_for_leaders("load", 1, 2)
        load.wait_for(50)
    assert load.check(workers.port) == set()
    assert count(workers, "has ended") == count(workers, "gave no sign of life")


def test_a_stop_and_a_start_in_good_order(workers: Workers) -> None:
    load = Load(workers.addresses, partitions=PARTITIONS)
    with load.running():
        for _ in range(2):
            load.wait_for(100)
            assert workers.stop() == 0
            workers.start()
            workers.wait_for_leaders("load", 1, 2)
        load.wait_for(50)
    assert load.check(workers.port) == set()


def test_a_signal_to_each_process_ends_them_as_well(workers: Workers) -> None:
    """As systemd sends it; the parent's own comes second, and cuts nothing short."""
    for worker in (1, 2):
        workers.signal_worker(worker, signal.SIGTERM)
    assert workers.stop() == 0
    assert sum("stopping: finishing the requests" in line for line in workers.log) >= 2


def test_one_worker_after_several_and_several_again(tmp_path: Path) -> None:
    """The files are the same, and leader epochs only rise."""
    with Workers(tmp_path / "data", 2, *QUICK) as workers:
        create_topic(workers.bootstrap, "load", PARTITIONS)
        workers.wait_for_leaders("load", 1, 2)
        load = Load(workers.addresses, partitions=PARTITIONS)
        with load.running():
            several = workers.arguments
            for arguments, leaders in (((), (1,)), (several, (1, 2))):
                load.wait_for(50)
                assert workers.stop() == 0
                workers.arguments, workers.count = arguments, len(leaders)
                workers.start()
                workers.wait_for_leaders("load", *leaders)
                load.wait_for(50)
        assert load.check(workers.port) == set()
