"""All brokers stop, and the one that led the metadata log stays away: the others wait until an operator names one.

The command is the one that their logs say.
"""

import http.client
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from confluent_kafka import Message, Producer

from faults.redis.load import read_log
from faults.replication.trio import PATIENCE, Trio

PARTITIONS = 3
BEGIN = "waiting for the other brokers: "


def produce(trio: Trio, count: int) -> set[bytes]:
    """Records that were acknowledged, by their values."""
    acknowledged: set[bytes] = set()

    def note(error: object, message: Message) -> None:
        if error is None and (value := message.value()) is not None:
            acknowledged.add(bytes(value))

    producer = Producer({"bootstrap.servers": trio.present, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce("orders", f"order {number}", partition=number % PARTITIONS, on_delivery=note)
    assert producer.flush(200) == 0
    assert len(acknowledged) == count
    return acknowledged


def await_values(trio: Trio, broker: int, expected: set[bytes]) -> None:
    """Until the broker gives these and no others: what it has is read when its followers have been heard of again."""
    deadline = time.monotonic() + PATIENCE
    while (found := read_values(trio, broker)) != expected:
        assert found < expected, found - expected
        assert time.monotonic() < deadline, f"{expected - found}{trio.tell()}"
        time.sleep(0.1)


def read_values(trio: Trio, broker: int) -> set[bytes]:
    return {value for rows in read_log(trio.brokers[broker].port, "orders").values() for _, value in rows}


@contextmanager
def waiting(trio: Trio, *identities: int) -> Iterator[dict[int, list[str]]]:
    """Start these, which wait; gives the command that each one's log says. In the end they have become ready."""
    begun = {broker: len(trio.brokers[broker].log) for broker in identities}
    starting = threading.Thread(target=trio.start, args=identities)
    starting.start()
    yield {broker: find_command(trio, broker, since) for broker, since in begun.items()}
    starting.join(PATIENCE)
    assert not starting.is_alive(), trio.tell()


def find_command(trio: Trio, broker: int, since: int) -> list[str]:
    """The arguments of the command that a broker's log says while it waits."""
    deadline = time.monotonic() + PATIENCE
    while True:
        for line in list(trio.brokers[broker].log[since:]):
            message = json.loads(line)["message"]
            if message.startswith(BEGIN) and "korvet-fast " in message:
                assert "If broker 1 never comes back" in message
                return str(message.partition("korvet-fast ")[2]).split()
        assert time.monotonic() < deadline, trio.tell()
        time.sleep(0.05)


def run(command: list[str], *more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "korvet_fast", *command, *more], capture_output=True, text=True)


def refuse_strangers(place: Path, commands: dict[int, list[str]]) -> None:
    """Another secret names nobody, and a broker is not named at another one's listener."""
    guess = place / "guess"
    guess.write_text("what somebody has guessed\n")
    command = commands[2]
    secret, address = command.index("--secret-file") + 1, command.index("--bootstrap") + 1
    for number, value in ((secret, str(guess)), (address, commands[3][address])):
        done = run([*command[:number], value, *command[number + 1 :]])
        assert done.returncode == 1
        assert "is it the listener replica:// of broker 2, with this secret?" in " ".join(done.stderr.split())


def is_ready(trio: Trio, broker: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", trio.webs[broker], timeout=60)
    connection.request("GET", "/readyz")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def fill_and_stop(trio: Trio) -> set[bytes]:
    """Records that were acknowledged; then broker 1 leads the metadata log, and all brokers stop."""
    trio.create("orders", PARTITIONS)
    acknowledged = produce(trio, 60)
    trio.move_registry(1)
    for broker in trio.brokers.values():
        broker.stop()
    return acknowledged


def test_the_others_go_on_under_another_leader(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        acknowledged = fill_and_stop(trio)
        lost, elsewhere = tmp_path / "broker-1" / "data", tmp_path / "elsewhere"
        lost.rename(elsewhere)
        trio.away = trio.brokers[1]
        with waiting(trio, 2, 3) as commands:
            assert [is_ready(trio, broker) for broker in (2, 3)] == [False, False]
            refuse_strangers(tmp_path, commands)
            deadline = time.monotonic() + PATIENCE
            for chosen in cycle(commands):  # who lacks what the other has refuses
                done = run(commands[chosen])
                if done.returncode == 0:
                    break
                assert time.monotonic() < deadline, done.stdout + done.stderr + trio.tell()
        assert done.stdout == f"broker {chosen} leads @registry 0\n"
        assert [is_ready(trio, broker) for broker in (2, 3)] == [True, True]
        for index in range(PARTITIONS):
            trio.appoint("orders", index, chosen)
        await_values(trio, chosen, acknowledged)
        elsewhere.rename(lost)
        trio.start(1)
        trio.away = None
        trio.wait_for("orders", lambda one: one.leader > 0 and len(one.isrs) == 3)
        await_values(trio, 1, acknowledged)
        assert json.loads(trio.run("cluster", "info", "--json"))["registry_leader"] == chosen


def test_one_of_two_lost_disks_is_replaced(tmp_path: Path) -> None:
    """The broker with the empty directory does not count, until somebody insists."""
    with Trio(tmp_path) as trio:
        acknowledged = fill_and_stop(trio)
        for broker in (1, 2):
            shutil.rmtree(tmp_path / f"broker-{broker}" / "data")
        trio.away = trio.brokers[1]
        with waiting(trio, 2, 3) as commands:
            done = run(commands[3])
            assert done.returncode == 1
            assert "broker 2 began with an empty directory, and does not count" in " ".join(done.stderr.split())
            done = run(commands[3], "--unclean")
            assert done.returncode == 2
            assert "what broker 3 lacks of the metadata log is lost for good" in " ".join(done.stderr.split())
            done = run(commands[3], "--unclean", "--yes")
            assert done.returncode == 0, done.stderr + trio.tell()
        for index in range(PARTITIONS):
            trio.appoint("orders", index, 3)
        await_values(trio, 3, acknowledged)
