"""What one client commits, another reads back; and groups as their administrators see them."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata
from kafka import TopicPartition as PythonPartition

from broker_process import BrokerProcess
from compat import client_confluent
from compat.group_scene import PARTITIONS, PATIENCE, Scene, play
from compat.record import Record
from requirement import require

pytestmark = pytest.mark.timeout(120)


class Position(NamedTuple):
    offset: int
    metadata: str


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("group.initial.rebalance.delay.ms=100", "num.partitions=2")
    with BrokerProcess(tmp_path_factory.mktemp("offsets") / "data", *settings) as running:
        yield running


def commit_confluent(bootstrap: str, topic: str, position: Position) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    place = TopicPartition(topic, 1, position.offset, metadata=position.metadata)
    assert consumer.commit(offsets=[place], asynchronous=False)[0].error is None
    consumer.close()


def read_confluent(bootstrap: str, topic: str) -> Position:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    (place,) = consumer.committed([TopicPartition(topic, 1)], timeout=PATIENCE)
    consumer.close()
    return Position(place.offset, place.metadata)


def commit_kafka_python(bootstrap: str, topic: str, position: Position) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False)
    place = PythonPartition(topic, 1)
    consumer.assign([place])
    consumer.commit({place: OffsetAndMetadata(position.offset, position.metadata, -1)})
    consumer.close()


def read_kafka_python(bootstrap: str, topic: str) -> Position:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False)
    found = consumer.committed(PythonPartition(topic, 1), metadata=True)
    consumer.close()
    return Position(found.offset, found.metadata.rstrip("\0"))  # confluent-kafka commits C's end of the text as well


def commit_aiokafka(bootstrap: str, topic: str, position: Position) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False)
        await consumer.start()
        place = AioPartition(topic, 1)
        consumer.assign([place])
        await consumer.commit({place: (position.offset, position.metadata)})
        await consumer.stop()

    asyncio.run(run())


def read_aiokafka(bootstrap: str, topic: str) -> Position:
    async def run() -> Position:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False)
        await consumer.start()
        place = AioPartition(topic, 1)
        consumer.assign([place])
        offset = await consumer.committed(place)
        await consumer.stop()
        return Position(offset, "")  # it does not hand out the text

    return asyncio.run(run())


COMMITTERS = [commit_confluent, commit_kafka_python, commit_aiokafka]
READERS = [read_confluent, read_kafka_python, read_aiokafka]


@pytest.mark.parametrize("commit", COMMITTERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("read", READERS, ids=lambda each: each.__name__)
def test_a_commit_is_read_back_by_another_client(
    broker: BrokerProcess,
    topic: str,
    commit: Callable[[str, str, Position], None],
    read: Callable[[str, str], Position],
) -> None:
    client_confluent.produce(
        broker.bootstrap, topic, [Record(None, b"x")] * 9, acks="all", compression="none", idempotent=False
    )
    commit(broker.bootstrap, topic, Position(7, "a note é"))
    assert read(broker.bootstrap, topic) == Position(7, "" if read is read_aiokafka else "a note é")


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


@pytest.fixture
def scene(broker: BrokerProcess, topic: str) -> Iterator[Scene]:
    """A group of one, which has read everything."""
    with play(broker, topic) as scene:
        scene.send()
        member = scene.member("confluent")
        scene.wait_read()
        scene.wait_shared(member)
        yield scene


def test_confluent_administers_groups(scene: Scene) -> None:
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})
    listed = admin.list_consumer_groups(request_timeout=PATIENCE).result()
    assert not listed.errors
    assert scene.group in {each.group_id for each in listed.valid}
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, request_timeout=PATIENCE).result()
    assert {each.state for each in stable.valid} == {ConsumerGroupState.STABLE}
    described = admin.describe_consumer_groups([scene.group], request_timeout=PATIENCE)[scene.group].result()
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    (member,) = described.members
    assert {each.partition for each in member.assignment.topic_partitions} == set(range(PARTITIONS))
    with pytest.raises(KafkaException, match="group"):
        admin.delete_consumer_groups([scene.group])[scene.group].result()
    scene.members[0].leave()
    wanted = ConsumerGroupTopicPartitions(scene.group, [TopicPartition(scene.topic, 2, 3)])
    admin.alter_consumer_group_offsets([wanted])[scene.group].result()
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(scene.group)])[scene.group].result()
    assert {each.partition: each.offset for each in offsets.topic_partitions} == {
        0: 10,
        1: 10,
        2: 3,
        3: 10,
        4: 10,
        5: 10,
    }
    admin.delete_consumer_groups([scene.group])[scene.group].result()
    listed = admin.list_consumer_groups(request_timeout=PATIENCE).result()
    assert scene.group not in {each.group_id for each in listed.valid}


def test_kafka_python_administers_groups(scene: Scene) -> None:
    admin = KafkaAdminClient(bootstrap_servers=scene.broker.bootstrap)
    try:
        assert scene.group in str(admin.list_groups())
        described = admin.describe_groups([scene.group])
        assert "Stable" in str(described)
        offsets = admin.list_group_offsets(scene.group)
        assert "10" in str(offsets)
        scene.members[0].leave()
        assert scene.group in str(admin.delete_groups([scene.group]))
        assert scene.group not in str(admin.list_groups())
    finally:
        admin.close()
