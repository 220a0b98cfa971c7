"""Kafka's own consumer in a group, and its tool that administers groups, against our broker."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.kafka import jars
from benchmarks.peers.process import PeerError
from broker_process import BrokerProcess
from compat.group_scene import PARTITIONS, play
from compat.test_java_tools import Tools
from requirement import missing

pytestmark = pytest.mark.timeout(240)  # the first run fetches the artifacts

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("group.initial.rebalance.delay.ms=200", "group.min.session.timeout.ms=1000")
    with BrokerProcess(tmp_path_factory.mktemp("java") / "data", *settings) as running:
        yield running


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Tools:
    try:
        return Tools(jars.classpath(), broker)
    except PeerError as error:
        missing(str(error))
        raise


class JavaMember:
    """A console consumer in a group that prints where each record was; it runs until it is told to end."""

    def __init__(self, tools: Tools, topic: str, group: str, into: Path, **properties: Any) -> None:
        self.into = into
        command = [
            *tools.java,
            CONSUMER,
            "--bootstrap-server",
            tools.broker.bootstrap,
            "--topic",
            topic,
            "--group",
            group,
        ]
        for name, value in {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 300, **properties}.items():
            command += ["--consumer-property", f"{name}={value}"]
        command += ["--property", "print.partition=true", "--property", "print.offset=true"]
        with into.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    @property
    def read(self) -> list[tuple[int, int]]:
        found = []
        for line in self.into.read_text().splitlines(keepends=True):
            if line.startswith("Partition:") and line.endswith("\n"):
                partition, offset, _ = line.split("\t")
                found.append((int(partition.partition(":")[2]), int(offset.partition(":")[2])))
        return found

    def end(self, *, kill: bool = False) -> None:
        if self.process.poll() is None:
            (self.process.kill if kill else self.process.terminate)()
        self.process.wait(60)


@pytest.fixture
def members(tools: Tools, tmp_path: Path) -> Iterator[Callable[..., JavaMember]]:
    started: list[JavaMember] = []

    def start(topic: str, group: str, **properties: Any) -> JavaMember:
        started.append(JavaMember(tools, topic, group, tmp_path / f"member-{len(started)}", **properties))
        return started[-1]

    yield start
    for one in started:
        one.end(kill=True)


def describe(tools: Tools, group: str) -> list[dict[str, str]]:
    """The table that the tool prints, by partition; empty while the group rebalances."""
    lines = [line.split() for line in tools.run(GROUPS, "--describe", "--group", group).splitlines() if line.strip()]
    titles = next((line for line in lines if line[0] == "GROUP"), [])
    rows = [dict(zip(titles, line, strict=False)) for line in lines if titles and line[0] == group]
    return sorted(rows, key=lambda row: int(row["PARTITION"]))


@pytest.mark.parametrize("strategy", ["RangeAssignor", "CooperativeStickyAssignor"], ids=["range", "cooperative"])
def test_java_members_share_with_a_late_one_and_survive_a_killed_one(
    tools: Tools, members: Callable[..., JavaMember], topic: str, strategy: str
) -> None:
    with play(tools.broker, topic) as scene:
        scene.send()
        properties = {
            "session.timeout.ms": 3000,
            "metadata.max.age.ms": 1000,
            "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{strategy}",
        }
        first = members(topic, scene.group, **properties)
        scene.wait(lambda: set(first.read) == scene.sent)
        second = members(topic, scene.group, **properties)

        def halved() -> bool:
            rows = describe(tools, scene.group)
            owners = [row["CONSUMER-ID"] for row in rows]
            return len(rows) == PARTITIONS and sorted(owners.count(one) for one in set(owners)) == [3, 3]

        scene.wait(halved)
        scene.send()
        scene.wait(lambda: {*first.read, *second.read} == scene.sent)
        assert second.read
        first.end(kill=True)
        scene.send()
        scene.wait(lambda: {*first.read, *second.read} == scene.sent)
        second.end()
        rows = describe(tools, scene.group)  # it commits when it leaves
        assert [(row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows] == [("30", "30", "0")] * 6


def test_a_static_java_member_comes_back_to_its_place(
    tools: Tools, members: Callable[..., JavaMember], topic: str
) -> None:
    with play(tools.broker, topic) as scene:
        scene.send()
        staying = scene.member("confluent", instance="staying", session=60_000)
        properties = {"group.instance.id": "java", "session.timeout.ms": 60_000}
        # The assignors' names must be common to both clients.
        properties["partition.assignment.strategy"] = "org.apache.kafka.clients.consumer.RangeAssignor"
        first = members(topic, scene.group, **properties)
        scene.wait(lambda: len(staying.owned) == 3)
        scene.wait(lambda: {*staying.read, *first.read} == scene.sent)
        before = staying.changes
        first.end()  # a static member does not leave
        scene.send()
        again = members(topic, scene.group, **properties)
        scene.wait(lambda: {*staying.read, *first.read, *again.read} == scene.sent)
        assert again.read
        assert staying.changes == before, scene.explain()


def test_the_broker_restarts_under_a_java_member(
    tools: Tools, start_broker: Callable[..., BrokerProcess], topic: str, tmp_path: Path
) -> None:
    broker = start_broker("group.initial.rebalance.delay.ms=200")
    with play(broker, topic) as scene:
        scene.send()
        own = Tools.__new__(Tools)
        own.broker, own.java = broker, tools.java
        member = JavaMember(own, topic, scene.group, tmp_path / "member", **{"session.timeout.ms": 30_000})
        try:
            scene.wait(lambda: set(member.read) == scene.sent)
            (before,) = {row["CONSUMER-ID"] for row in describe(own, scene.group)}
            broker.kill()
            broker.start()
            for _ in range(2):
                scene.send()
                scene.wait(lambda: set(member.read) == scene.sent)
                time.sleep(1)  # some heartbeats
            assert {row["CONSUMER-ID"] for row in describe(own, scene.group)} == {before}
            assert len(member.read) == len(set(member.read))
        finally:
            member.end(kill=True)


def test_the_tool_lists_describes_resets_and_deletes(tools: Tools, topic: str) -> None:
    with play(tools.broker, topic) as scene:
        scene.send()
        member = scene.member("confluent")
        scene.wait_read()
        scene.wait_shared(member)
        assert scene.group in tools.run(GROUPS, "--list").split()
        stable = tools.run(GROUPS, "--list", "--state", "Stable")
        assert scene.group in stable
        assert scene.group not in tools.run(GROUPS, "--list", "--state", "Empty")
        assert "Classic" in tools.run(GROUPS, "--list", "--type", "classic")
        assert "Stable" in tools.run(GROUPS, "--describe", "--group", scene.group, "--state")
        shown = tools.run(GROUPS, "--describe", "--group", scene.group, "--members", "--verbose")
        assert f"{topic}(0,1,2,3,4,5)" in shown.replace(" ", "") or f"{topic}:0,1,2,3,4,5" in shown.replace(" ", ""), (
            shown
        )
        rows = describe(tools, scene.group)
        assert [(row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) for row in rows] == [
            (str(partition), "10", "0") for partition in range(PARTITIONS)
        ]
        member.leave()
        reset = ("--reset-offsets", "--group", scene.group, "--topic", topic, "--execute")
        tools.run(GROUPS, *reset, "--to-offset", "4")
        assert {row["CURRENT-OFFSET"] for row in describe(tools, scene.group)} == {"4"}
        tools.run(GROUPS, *reset, "--to-earliest")
        assert {row["LAG"] for row in describe(tools, scene.group)} == {"10"}
        deleted = tools.run(GROUPS, "--delete-offsets", "--group", scene.group, "--topic", f"{topic}:1")
        assert "Successful" in deleted
        assert len(describe(tools, scene.group)) == PARTITIONS - 1
        assert "success" in tools.run(GROUPS, "--delete", "--group", scene.group)
        assert scene.group not in tools.run(GROUPS, "--list").split()
