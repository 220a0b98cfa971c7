"""Kafka's own tools and clients at three brokers that keep each other's copies, while leaders move."""

import subprocess
from collections.abc import Iterator

import pytest

from compat.client import open_client
from compat.group_scene import PARTITIONS, PATIENCE, play
from compat.java_tools import Tools
from compat.record import Record
from faults.replication.trio import QUICK, Trio
from requirement import require

SETTINGS = ("group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=1000")


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    with Trio(tmp_path_factory.mktemp("trio"), *SETTINGS, more=QUICK) as running:
        yield running


def move(trio: Trio, topic: str, partitions: int) -> None:
    """Another broker leads each partition."""
    for index, found in trio.describe(topic).items():
        if index < partitions:
            trio.appoint(topic, index, found.leader % 3 + 1 if found.leader > 0 else 1)


def test_javas_tools_see_the_copies(trio: Trio, topic: str) -> None:
    tools = Tools(trio.brokers[2])
    made = ("--topic", topic, "--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    tools.topics("--create", *made)
    trio.wait_for(topic, lambda one: one.leader > 0 and len(one.isrs) == 3)
    head, *rows = tools.topics("--describe", "--topic", topic).strip().splitlines()
    assert "ReplicationFactor: 3" in head
    assert "min.insync.replicas=2" in head
    fields = [dict(part.split(": ", 1) for part in row.strip().split("\t") if ": " in part) for row in rows]
    assert sorted(row["Leader"] for row in fields) == ["1", "2", "3"]
    assert {"".join(sorted(row["Replicas"])) for row in fields} == {",,123"}
    assert {"".join(sorted(row["Isr"])) for row in fields} == {",,123"}
    assert tools.topics("--describe", "--under-replicated-partitions", "--topic", topic).strip() == ""
    told = tools.run("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    assert told.count(f'"partition":"{topic}-0"') == 3
    trio.appoint(topic, 0, 2)
    election = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert "Valid replica already elected" in tools.run("org.apache.kafka.tools.LeaderElectionCommand", *election)
    assert "not exist" in tools.refuse("topics", "--describe", "--topic", f"no-{topic}")


@pytest.mark.parametrize("name", ["kcat", "java_41", "franz_go"])
def test_records_with_acks_all_survive_moves(trio: Trio, topic: str, name: str) -> None:
    trio.create(topic, 1)
    records = [Record(b"key", b"%d" % number) for number in range(40)]
    with open_client(name, trio.bootstrap) as client:
        for begin in range(0, len(records), 10):
            client.produce(topic, records[begin : begin + 10], acks="all", idempotent=name != "kcat")
            move(trio, topic, 1)
        assert client.consume(topic, len(records)) == records


def test_a_group_reads_on_when_leaders_move_and_one_is_killed(trio: Trio, topic: str) -> None:
    with play(trio.brokers[1], topic) as scene:
        scene.bootstrap = trio.bootstrap
        trio.wait_for(topic, lambda one: one.leader > 0 and len(one.isrs) == 3)
        scene.gather("franz_go", "java_41")
        move(trio, topic, PARTITIONS)
        scene.send()
        scene.wait_read()
        trio.brokers[3].kill()
        trio.away = trio.brokers[3]
        for index, found in trio.describe(topic).items():
            if found.leader not in (1, 2):
                trio.appoint(topic, index, index % 2 + 1)
        scene.send()
        scene.wait_read()
        trio.away = None
        trio.start(3)
        trio.wait_for(topic, lambda one: len(one.isrs) == 3)


def test_kcat_reads_as_a_group_over_a_move(trio: Trio, topic: str) -> None:
    trio.create(topic, 2)
    command = [require("kcat"), "-b", trio.bootstrap]
    for begin in (0, 10):
        lines = "".join(f"{number}\n" for number in range(begin, begin + 10))
        subprocess.run([*command, "-P", "-t", topic, "-X", "acks=all"], input=lines, text=True, check=True)
        reading = [*command, "-G", f"group-of-{topic}", "-e", "-q", "-X", "auto.offset.reset=earliest", topic]
        read = subprocess.run(reading, check=True, timeout=PATIENCE, capture_output=True, text=True).stdout.split()
        assert sorted(map(int, read)) == list(range(begin, begin + 10))
        move(trio, topic, 2)
    listed = subprocess.run([*command, "-L", "-t", topic], check=True, capture_output=True, text=True).stdout
    assert "3 brokers:" in listed
    assert listed.count("replicas: ") == 2
