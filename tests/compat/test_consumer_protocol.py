"""Real clients in groups of the consumer protocol (KIP-848), which the broker assigns to; groups that change over."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from broker_process import BrokerProcess
from compat.group_scene import PARTITIONS, PATIENCE, MemberProcess, Scene, play
from compat.java_tools import CONSUMER, Tools, java
from member_history import check_members
from redis_server import PROGRAMS, RedisServer

CLIENTS = ["confluent", "java_41"]
SETTINGS = (
    "group.initial.rebalance.delay.ms=100",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.session.timeout.ms=6000",
    "auto.create.topics.enable=false",
)
PATIENT = ("group.consumer.heartbeat.interval.ms=500", "group.consumer.session.timeout.ms=180000")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("consumer") / "data", *SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def patient_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Sessions last longer than a Java client takes to start, on a machine however busy."""
    with BrokerProcess(tmp_path_factory.mktemp("patient") / "data", *PATIENT) as running:
        yield running


def member(scene: Scene, client: str, **options: Any) -> MemberProcess:
    return scene.member(client, protocol="consumer", **options)


def group_type(broker: BrokerProcess, group: str) -> ConsumerGroupType:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = admin.list_consumer_groups(request_timeout=PATIENCE).result()
    (found,) = [each.type for each in listed.valid if each.group_id == group]
    return found


@pytest.mark.parametrize(
    "clients", [("confluent",) * 3, ("java_41", "confluent", "java_41")], ids=["confluent", "java and confluent"]
)
def test_three_members_of_whom_one_joins_late_one_leaves_and_one_is_killed(
    broker: BrokerProcess, topic: str, clients: tuple[str, str, str]
) -> None:
    with play(broker, topic) as scene:
        scene.send()
        first, second = (member(scene, client) for client in clients[:2])
        scene.wait_shared(first, second)
        scene.send()
        scene.wait(lambda: set(scene.read) == scene.sent)
        third = member(scene, clients[2])
        scene.wait_shared(first, second, third)
        scene.send()
        scene.wait_read()
        assert scene.unexplained == 0, scene.explain()  # nobody died: all was committed when it moved
        first.leave()
        scene.wait_shared(second, third)
        scene.send()
        second.kill()
        scene.wait_shared(third)
        scene.send()
        scene.wait_read()
        check_members(scene)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_the_broker_restarts_and_nobody_loses_a_partition(
    start_broker: Callable[..., BrokerProcess], topic: str, client: str, how: int
) -> None:
    broker = start_broker(*PATIENT)
    with play(broker, topic) as scene:
        members = [member(scene, client) for _ in range(2)]
        scene.wait_shared(*members)
        scene.send()
        scene.wait_read()
        before = [one.changes for one in members]
        broker.stop(how)
        broker.start()
        for _ in range(3):
            scene.send()
            scene.wait_read()
            time.sleep(0.7)  # some heartbeats
        assert [one.changes for one in members] == before, scene.explain()
        assert scene.doubles == 0, scene.explain()
        scene.wait_shared(*members)
        check_members(scene)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_comes_back_and_nobody_else_notices(
    patient_broker: BrokerProcess, topic: str, client: str
) -> None:
    with play(patient_broker, topic) as scene:
        staying = member(scene, client, instance="staying")
        going = member(scene, client, instance="going")
        scene.wait_shared(staying, going)
        scene.send()
        scene.wait_read()
        owned, before = going.owned, staying.changes
        going.leave()
        scene.send()
        back = member(scene, client, instance="going")
        scene.wait(lambda: back.owned == owned)
        scene.send()
        scene.wait_read()
        assert staying.changes == before, scene.explain()
        assert scene.doubles == 0, scene.explain()
        check_members(scene)


def test_a_second_member_of_one_instance_is_kept_out(patient_broker: BrokerProcess, topic: str) -> None:
    with play(patient_broker, topic) as scene:
        scene.send()
        first = member(scene, "confluent", instance="one")
        scene.wait_shared(first)
        second = member(scene, "confluent", instance="one")
        scene.wait(lambda: any("UNRELEASED" in line or "instance" in line.lower() for line in second.errors))
        assert second.owned == set()
        scene.send()
        scene.wait_read()


def test_a_group_changes_over_when_nobody_is_in_it_and_goes_on_where_it_was(broker: BrokerProcess, topic: str) -> None:
    with play(broker, topic) as scene:
        for turn, protocol in enumerate(("classic", "consumer", "classic")):
            scene.send()
            one = scene.member("confluent", protocol=protocol)
            scene.wait_read()
            assert group_type(broker, scene.group) is (ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER)[turn % 2]
            one.leave()
        assert scene.doubles == 0, scene.explain()


def test_administrators_see_a_group_and_its_members(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with play(broker, topic) as scene:
        scene.send()
        one = member(scene, "confluent")
        scene.wait_read()
        scene.wait_shared(one)
        described = admin.describe_consumer_groups([scene.group], request_timeout=PATIENCE)[scene.group].result()
        assert (described.type, described.state) == (ConsumerGroupType.CONSUMER, ConsumerGroupState.STABLE)
        assert described.partition_assignor == "uniform"
        (seen,) = described.members
        places = {each.partition for each in seen.assignment.topic_partitions}
        assert places == {each.partition for each in seen.target_assignment.topic_partitions} == set(range(PARTITIONS))
        one.leave()
        admin.delete_consumer_groups([scene.group], request_timeout=PATIENCE)[scene.group].result()


@pytest.mark.parametrize("redis_program", PROGRAMS[:1], indirect=True)  # groups on both: test_groups_several.py
def test_coordinators_over_redis_die_in_turn_and_nobody_loses_a_partition(
    redis_server: RedisServer, topic: str, tmp_path: Path
) -> None:
    settings = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500", *PATIENT)
    brokers = [BrokerProcess(tmp_path, *settings, store=redis_server.url) for _ in range(2)]
    try:
        for one in brokers:
            one.start()
        with play(brokers[0], topic) as scene:
            scene.bootstrap = ",".join(one.bootstrap for one in brokers)
            # Kafka's client: librdkafka 2.16.1 may take a coordinator that is back for dead for ever while it commits.
            members = [member(scene, "java_41") for _ in range(3)]
            scene.wait_shared(*members)
            scene.send()
            scene.wait_read()
            before = [one.changes for one in members]
            for broker in brokers:
                broker.kill()
                scene.send()
                scene.wait_read()
                broker.start()
                scene.send()
                scene.wait_read()
            assert [one.changes for one in members] == before, scene.explain()
            members.pop().leave()
            scene.wait_shared(*members)
            check_members(scene)
    finally:
        for one in brokers:
            one.stop()


class ConsoleConsumer:
    """Kafka's own, in a group; it prints where each record was, and runs until it is told to end."""

    def __init__(self, scene: Scene, into: Path, *subscription: str) -> None:
        self.into = into
        settings = ("group.protocol=consumer", "auto.offset.reset=earliest", "metadata.max.age.ms=1000")
        command = [*java(), CONSUMER, "--bootstrap-server", scene.broker.bootstrap, "--group", scene.group]
        command += subscription
        for value in settings:
            command += ["--consumer-property", value]
        for value in ("print.partition=true", "print.offset=true"):
            command += ["--property", value]
        with into.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    @property
    def read(self) -> set[tuple[int, int]]:
        rows = [line.split("\t") for line in self.into.read_text().splitlines() if line.startswith("Partition:")]
        return {(int(row[0].partition(":")[2]), int(row[1].partition(":")[2])) for row in rows if len(row) == 3}

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE)


def test_kafkas_console_consumers_share_a_group_and_its_tool_shows_it(
    broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    tools = Tools(broker)
    with play(broker, topic) as scene:
        consumers = [ConsoleConsumer(scene, tmp_path / "one", "--topic", topic)]
        try:
            scene.send()
            scene.wait(lambda: consumers[0].read == scene.sent)
            consumers.append(ConsoleConsumer(scene, tmp_path / "other", "--include", f"{topic[:-1]}."))

            def halved() -> bool:
                owners = [row["CONSUMER-ID"] for row in tools.positions(scene.group)]
                return len(owners) == PARTITIONS and sorted(owners.count(each) for each in set(owners)) == [3, 3]

            scene.wait(halved)
            scene.send()
            scene.wait(lambda: consumers[0].read | consumers[1].read == scene.sent)
            assert consumers[1].read
            of_group = ("--describe", "--group", scene.group)
            state = tools.groups(*of_group, "--state")
            assert "Stable" in state
            assert "uniform" in state
            assert "consumer" in tools.groups("--list", "--type", "consumer").lower()
            members = tools.groups(*of_group, "--members", "--verbose")
            assert members.count(scene.group) == 2
        finally:
            for one in consumers:
                one.end()
        lags = [row["LAG"] for row in tools.positions(scene.group)]
        assert lags == ["0"] * PARTITIONS, "\n".join(one.into.read_text() for one in consumers)
        assert "success" in tools.groups("--delete", "--group", scene.group)


def test_the_broker_applies_a_pattern_to_topics_of_now_and_later(broker: BrokerProcess, topic: str) -> None:
    with play(broker, topic) as scene:
        scene.send()
        one = member(scene, "confluent", topic=f"^{topic}(-later)?$")
        scene.wait_shared(one)
        scene.wait_read()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(f"{topic}-later", PARTITIONS + 1)])[f"{topic}-later"].result(PATIENCE)
        scene.wait(lambda: PARTITIONS in one.owned)
        one.leave()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_goes_comes_back_and_grows(broker: BrokerProcess, topic: str, client: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with play(broker, topic) as scene:
        members = [member(scene, client) for _ in range(2)]
        scene.wait_shared(*members)
        admin.delete_topics([topic])[topic].result(PATIENCE)
        scene.wait(lambda: not any(one.owned for one in members))
        admin.create_topics([NewTopic(topic, PARTITIONS // 2)])[topic].result(PATIENCE)
        scene.wait(lambda: sorted(part for one in members for part in one.owned) == list(range(PARTITIONS // 2)))
        admin.create_partitions([NewPartitions(topic, PARTITIONS)])[topic].result(PATIENCE)
        scene.wait_shared(*members)
        scene.send()
        scene.wait_read()
