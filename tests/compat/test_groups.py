"""Groups of real clients, beyond what the matrix asks of every client."""

import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from broker_process import BrokerProcess
from compat.group_scene import PARTITIONS, PATIENCE, play
from requirement import require


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("group.initial.rebalance.delay.ms=100", "num.partitions=2")
    with BrokerProcess(tmp_path_factory.mktemp("groups") / "data", *settings) as running:
        yield running


def test_a_static_member_that_has_been_replaced_is_told_so(broker: BrokerProcess, topic: str) -> None:
    with play(broker, topic) as scene:
        scene.send()
        first = scene.member("confluent", instance="one", session=30_000)
        scene.wait_shared(first)
        second = scene.member("confluent", instance="one", session=30_000)
        scene.wait_shared(second)
        scene.wait(lambda: any("fenced" in line for line in first.errors))
        scene.send()
        scene.wait_read()


def test_kcat_reads_as_a_group(broker: BrokerProcess, topic: str) -> None:
    with play(broker, topic) as scene:
        scene.send()
        command = [require("kcat"), "-b", broker.bootstrap, "-G", scene.group, "-e", "-q", "-f", "%p %o\n"]
        command += ["-X", "auto.offset.reset=earliest", topic]
        for _ in range(2):
            printed = subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True, text=True).stdout
            read = {(int(line.split()[0]), int(line.split()[1])) for line in printed.splitlines()}
            assert read == scene.sent
            before, scene.sent = scene.sent, set()
            scene.send()
            assert not before & scene.sent


def test_groups_are_filtered_refused_and_their_offsets_altered(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with play(broker, topic) as scene:
        scene.send()
        member = scene.member("confluent")
        scene.wait_read()
        scene.wait_shared(member)
        stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, request_timeout=PATIENCE).result()
        assert {each.state for each in stable.valid} == {ConsumerGroupState.STABLE}
        assert scene.group in {each.group_id for each in stable.valid}
        described = admin.describe_consumer_groups([scene.group], request_timeout=PATIENCE)[scene.group].result()
        assert described.partition_assignor == "range"
        (seen,) = described.members
        assert {each.partition for each in seen.assignment.topic_partitions} == set(range(PARTITIONS))
        with pytest.raises(KafkaException, match="group"):
            admin.delete_consumer_groups([scene.group])[scene.group].result()
        member.leave()
        wanted = ConsumerGroupTopicPartitions(scene.group, [TopicPartition(scene.topic, 2, 3)])
        admin.alter_consumer_group_offsets([wanted])[scene.group].result()
        offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(scene.group)])[scene.group].result()
        found = {each.partition: each.offset for each in offsets.topic_partitions}
        assert found == {0: 10, 1: 10, 2: 3, 3: 10, 4: 10, 5: 10}
