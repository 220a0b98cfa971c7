"""A broker that is not in sync leads if somebody insists: it is said before what that costs."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

from broker_process import BrokerProcess
from counts import note, note_values
from faults.redis.load import read_log
from faults.replication.metrics import until
from faults.replication.trio import PATIENCE, Trio


def produce(trio: Trio, count: int, begin: int = 0) -> None:
    producer = Producer({"bootstrap.servers": trio.present, "acks": "all", "log_level": 0})
    for number in range(begin, begin + count):
        producer.produce("orders", f"order {number}")
    assert producer.flush(200) == 0


def run_command(broker: BrokerProcess, *arguments: str) -> str:
    """A command of ours, at one broker only; what it says."""
    command = [sys.executable, "-m", "korvet_fast", *arguments, "--bootstrap", broker.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else " ".join(done.stderr.split()) or str(done.returncode)


def ends(trio: Trio, code: int, words: str, *command: str) -> bool:
    """Whether a command ends so, and says this: the broker that it asks may hear a moment later how things are."""
    done = trio.run_once(*command)
    return done.returncode == code and words in " ".join(done.stderr.split())


def find_stray(trio: Trio, broker: int) -> Path:
    """The copy of `orders 0` that a broker has set aside, as soon as it has."""
    deadline = time.monotonic() + PATIENCE
    while not (found := list((trio.place / f"broker-{broker}" / "data").glob("orders-0.*-stray"))):
        assert time.monotonic() < deadline, trio.tell()
        time.sleep(0.1)
    (stray,) = found
    return stray


def test_what_is_lost_is_told_and_then_lost(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", 1)
        produce(trio, 10)
        leader = trio.find_leader("orders")
        late, heir = (broker for broker in (1, 2, 3) if broker != leader)
        trio.brokers[late].kill()
        trio.wait_for("orders", lambda one: len(one.isrs) == 2)
        produce(trio, 30, begin=10)
        trio.appoint("@registry", 0, heir)
        trio.brokers[leader].kill()
        trio.away = trio.brokers[leader]
        trio.start(late)  # what it writes into the metadata log waits until it has copied that itself
        trio.wait_for("orders", lambda one: one.leader == -1)
        unclean = ("partition", "lead", "orders", "0", "--broker", str(late), "--unclean")
        until(trio, lambda: ends(trio, 1, "is not in sync, and would lose records", *unclean[:-1]))
        told = f"broker {late} lacks 30 records of orders 0, and what only broker {leader} has, which is away"
        until(trio, lambda: ends(trio, 2, told, *unclean))
        needless = ("partition", "lead", "orders", "0", "--broker", str(heir), "--unclean")
        until(trio, lambda: f"broker {heir} is in sync, so nothing is lost" in trio.run_once(*needless).stderr)
        trio.run(*unclean, "--yes")
        assert trio.find_leader("orders") == late
        trio.start(leader)
        trio.wait_for("orders", lambda one: len(one.isrs) == 3)
        produce(trio, 5, begin=100)
        expected = [*range(10), *range(100, 105)]
        found = read_log(trio.brokers[leader].port, "orders")
        stored = [b"order %d" % number for number in (*range(40), *range(100, 105))]
        note_values(stored, [value for _, value in found[0]])
        note(told=30)  # by the warning
        assert found == {0: [(offset, b"order %d" % number) for offset, number in enumerate(expected)]}


def test_copies_of_topics_that_the_metadata_log_loses_are_kept(tmp_path: Path) -> None:
    """The broker that is named hung while the topic was made. A copy can be read by a broker of its own."""
    with Trio(tmp_path) as trio:
        trio.create("first", 1)
        trio.move_registry(1)
        late = trio.brokers[3].process
        assert late is not None
        trio.away = trio.brokers[3]
        late.send_signal(signal.SIGSTOP)
        try:
            # Its last fetch was answered long ago: it would read the answer, with the topic, when it goes on.
            trio.wait_for("first", lambda one: sorted(one.isrs) == [1, 2])
            trio.run("topic", "create", "orders", "--partitions", "1", "--replication-factor", "3")
            trio.wait_for("orders", lambda one: one.leader in (1, 2) and sorted(one.isrs) == [1, 2])
            produce(trio, 10)
            trio.brokers[1].kill()
        finally:
            late.send_signal(signal.SIGCONT)
        unclean = ("partition", "lead", "@registry", "0", "--broker", "3", "--unclean")
        assert "Copies of topics that are lost so are set aside" in run_command(trio.brokers[3], *unclean)
        deadline = time.monotonic() + PATIENCE
        while why := run_command(trio.brokers[3], *unclean, "--yes"):
            assert time.monotonic() < deadline, why + trio.tell()
        stray = find_stray(trio, 2)
        (line,) = (line for line in list(trio.brokers[2].log) if "orders:0: its topic is gone" in line)
        assert f"offsets 0 to 9, is not served any more, and lies in {stray}." in line
        trio.start(1)
        trio.away = None
        trio.wait_for("first", lambda one: one.leader > 0 and len(one.isrs) == 3)
        assert "orders" not in trio.run("topic", "list")
        find_stray(trio, 1)
        trio.brokers[2].stop()
        trio.start(2)
        assert list(stray.parent.glob("orders-0*")) == [stray]
        assert "orders" not in trio.run("topic", "list")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stray.rename(elsewhere / "orders-0")
    with BrokerProcess(elsewhere) as broker:
        assert run_command(broker, "topic", "create", "orders", "--partitions", "1") == ""
        found = read_log(broker.port, "orders")
    assert found == {0: [(number, b"order %d" % number) for number in range(10)]}
