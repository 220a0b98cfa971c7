"""Kafka's console consumers sharing a group, and what its tool for groups says and does while members are there."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from compat.group_scene import PARTITIONS, play
from compat.java_tools import CONSUMER, PRODUCER, SOURCES, STORES, Tools, java, open_broker

NAME = "the-static-one"


@pytest.fixture(scope="module", params=STORES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with open_broker(request.param, tmp_path_factory.mktemp("groups")) as running:
        yield running


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Tools:
    return Tools(broker)


class ConsoleConsumer:
    """One in a group that prints where each record was; it runs until it is told to end."""

    def __init__(self, broker: BrokerProcess, topic: str, group: str, into: Path) -> None:
        self.into = into
        command = [*java(), CONSUMER, "--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group]
        settings = ("auto.offset.reset=earliest", "heartbeat.interval.ms=300", "session.timeout.ms=6000")
        for option, values in {
            "--consumer-property": settings,
            "--property": ("print.partition=true", "print.offset=true"),
        }.items():
            for value in values:
                command += [option, value]
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
def consumers(broker: BrokerProcess, tmp_path: Path) -> Iterator[Callable[[str, str], ConsoleConsumer]]:
    started: list[ConsoleConsumer] = []

    def start(topic: str, group: str) -> ConsoleConsumer:
        started.append(ConsoleConsumer(broker, topic, group, tmp_path / f"consumer-{len(started)}"))
        return started[-1]

    yield start
    for one in started:
        one.end(kill=True)


def words(table: str, group: str) -> list[list[str]]:
    """A table's rows of this group."""
    return [line.split() for line in table.splitlines() if line.startswith(group)]


def test_console_consumers_share_with_a_late_one_and_survive_a_killed_one(
    tools: Tools, consumers: Callable[[str, str], ConsoleConsumer], topic: str
) -> None:
    with play(tools.broker, topic) as scene:
        scene.send()
        one = consumers(topic, scene.group)
        scene.wait(lambda: set(one.read) == scene.sent)
        other = consumers(topic, scene.group)

        def halved() -> bool:
            owners = [row["CONSUMER-ID"] for row in tools.positions(scene.group)]
            return len(owners) == PARTITIONS and sorted(owners.count(each) for each in set(owners)) == [3, 3]

        scene.wait(halved)
        scene.send()
        scene.wait(lambda: {*one.read, *other.read} == scene.sent)
        assert other.read
        one.end(kill=True)
        scene.send()
        scene.wait(lambda: {*one.read, *other.read} == scene.sent)
        other.end()
        assert [row["LAG"] for row in tools.positions(scene.group)] == ["0"] * PARTITIONS  # it commits when it leaves


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_the_tool_lists_and_describes_a_group_with_members_and_leaves_it_alone(
    tools: Tools, topic: str, kind: str
) -> None:
    with play(tools.broker, topic) as scene:
        dynamic = scene.member("java_41", protocol=kind)
        scene.wait_shared(dynamic)
        static = scene.member("java_41", protocol=kind, instance=NAME)
        scene.wait_shared(dynamic, static)
        scene.send()
        scene.wait_read()
        of_group = ("--group", scene.group)
        assert scene.group in tools.groups("--list").split()
        assert scene.group in tools.groups("--list", "--state", "Stable")
        assert scene.group not in tools.groups("--list", "--state", "Empty")
        assert [scene.group, kind.capitalize()] in words(tools.groups("--list", "--type", kind), scene.group)
        other = "classic" if kind == "consumer" else "consumer"
        assert scene.group not in tools.groups("--list", "--type", other).split()
        (state,) = words(tools.groups("--describe", *of_group, "--state"), scene.group)
        assert state[-3:] == ["uniform" if kind == "consumer" else "range", "Stable", "2"]
        shown = words(tools.groups("--describe", *of_group, "--members", "--verbose"), scene.group)
        by_instance = {row[2]: row[-5:] for row in shown}  # a dynamic member has no word there, but its host
        for name, one in {"/127.0.0.1": dynamic, NAME: static}.items():
            owned = f"{topic}:" + ",".join(map(str, sorted(one.owned)))
            epochs = by_instance[name][1::2]
            assert by_instance[name][::2] == ["3", owned, owned if kind == "consumer" else "-"]
            assert epochs == (["2", "2"] if kind == "consumer" else ["-", "-"])
        rows = tools.positions(scene.group)
        assert [(row["PARTITION"], row["LAG"]) for row in rows] == [(str(each), "0") for each in range(PARTITIONS)]
        assert len({row["CONSUMER-ID"] for row in rows}) == 2
        refused = tools.refuse("groups", "--reset-offsets", *of_group, "--topic", topic, "--to-earliest", "--execute")
        assert "current state is Stable" in refused
        assert "GroupNotEmptyException" in tools.refuse("groups", "--delete", *of_group)
        refused = tools.refuse("groups", "--delete-offsets", *of_group, "--topic", topic)
        assert "GroupSubscribedToTopicException" in refused
        assert len(dynamic.committed) == len(static.committed) == 3
        dynamic.leave()
        static.kill()
        assert {row["LAG"] for row in tools.positions(scene.group)} == {"0"}


def test_a_consumer_has_the_broker_look_for_its_topics(tools: Tools, topic: str) -> None:
    def send(name: str, text: str) -> None:
        tools.topics("--create", "--topic", name)
        tools.run(PRODUCER, "--topic", name, stdin=f"{text}\n")

    send(f"other-{topic}", "not for it")
    send(f"{topic}-early", "there before it")
    command = [*java(), str(SOURCES / "PatternConsumer.java"), tools.broker.bootstrap, topic, f"{topic}-.*"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as consumer:
        try:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == f"{topic}-early there before it\n"
            send(f"{topic}-late", "made meanwhile")
            assert consumer.stdout.readline() == f"{topic}-late made meanwhile\n"
        finally:
            consumer.kill()
