"""The rules of topics, tried by real clients: names, sizes, compression, times, settings, partitions."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from broker_process import BrokerProcess
from compat.client import Client
from compat.record import COMPRESSIONS, Record
from korvet_fast._native import batch_headers

Configs = dict[str, str]


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(admin: AdminClient, name: str, partitions: int = 1, configs: Configs | None = None, **more: Any) -> None:
    """Raises `KafkaException` with the broker's refusal."""
    admin.create_topics([NewTopic(name, partitions, 1, config=configs or {})], **more)[name].result(60)


def refusal(work: Callable[..., object], *arguments: Any, **more: Any) -> tuple[str, str]:
    """The name and the text of the broker's error."""
    with pytest.raises(KafkaException) as refused:
        work(*arguments, **more)
    error = refused.value.args[0]
    return error.name(), error.str()


def send(broker: BrokerProcess, topic: str, *values: bytes, timestamp: int = 0, **settings: Any) -> list[Any]:
    """Delivery reports, in order: the message or the error."""
    reports: list[Any] = []

    def note(error: KafkaError | None, message: Message) -> None:
        reports.append(error or message)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 10_000_000, **settings})
    for value in values:
        producer.produce(topic, value, timestamp=timestamp, on_delivery=note)
    assert producer.flush(120) == 0
    return reports


def read(broker: BrokerProcess, topic: str, count: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages: list[Message] = []
    while len(messages) < count:
        (message,) = consumer.consume(1, timeout=120)
        assert message.error() is None
        messages.append(message)
    consumer.close()
    return messages


def own_configs(admin: AdminClient, topic: str) -> Configs:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(60)
    return {name: entry.value for name, entry in found.items() if entry.source == 1}


@pytest.mark.parametrize("name", ["a", "a.b", "-", "_", "...", "A-9._", "x" * 249])
def test_legal_names(admin: AdminClient, name: str) -> None:
    create(admin, name)
    assert name in admin.list_topics(timeout=60).topics
    admin.delete_topics([name])[name].result(60)


@pytest.mark.parametrize("name", [".", "..", "a b", "a/b", "ä", "a:b", "x" * 250, "@registry", "../up"])
def test_illegal_names(admin: AdminClient, broker: BrokerProcess, name: str) -> None:
    assert refusal(create, admin, name)[0] == "TOPIC_EXCEPTION"
    (report,) = send(broker, name, b"value")
    assert isinstance(report, KafkaError)
    assert name not in admin.list_topics(timeout=60).topics


def test_names_that_metrics_could_not_tell_apart(admin: AdminClient, topic: str) -> None:
    create(admin, f"{topic}.a_b")
    for near in (f"{topic}_a.b", f"{topic}.a.b", f"{topic}_a_b"):
        code, text = refusal(create, admin, near)
        assert code == "TOPIC_EXCEPTION"
        assert f"{topic}.a_b" in text
    assert refusal(create, admin, f"{topic}.a_b")[0] == "TOPIC_ALREADY_EXISTS"
    create(admin, f"{topic}.A_b")  # case is another matter


def test_a_topic_has_its_own_largest_batch(admin: AdminClient, broker: BrokerProcess, topic: str) -> None:
    create(admin, topic, configs={"max.message.bytes": "5000"})
    small, large = send(broker, topic, b"x" * 4_000, b"x" * 6_000, **{"batch.num.messages": 1})
    assert isinstance(small, Message)
    assert large.name() == "MSG_SIZE_TOO_LARGE"
    (packed,) = send(broker, topic, b"x" * 600_000, **{"compression.type": "zstd"})  # the size sent is what counts
    assert isinstance(packed, Message)
    create(admin, f"{topic}-larger", configs={"max.message.bytes": "3000000"})
    (fits,) = send(broker, f"{topic}-larger", b"x" * 2_500_000)
    assert isinstance(fits, Message)
    assert read(broker, f"{topic}-larger", 1)[0].value() == b"x" * 2_500_000


@pytest.mark.parametrize("wanted", [*COMPRESSIONS, "producer"])
def test_compression_at_rest(
    admin: AdminClient, broker: BrokerProcess, clients: Callable[[str], Client], topic: str, wanted: str
) -> None:
    create(admin, topic, configs={"compression.type": "uncompressed" if wanted == "none" else wanted})
    records = [
        Record(b"key", b"value " * 500, (("name", b"content"), ("null", None))),
        Record(None, None),
        Record(b"", b""),
    ]
    for sent in COMPRESSIONS:
        clients("confluent").produce(topic, records, compression=sent, idempotent=sent != "gzip")
    log = Path(broker.store.removeprefix("file:")) / f"{topic}-0" / f"{0:020}.log"
    data = log.read_bytes()
    found = batch_headers(data, True)
    assert found[-1].start + found[-1].size == len(data)
    expected = list(range(5)) if wanted == "producer" else [COMPRESSIONS.index(wanted)]
    assert sorted({batch.compression for batch in found}) == expected
    for name in ("confluent", "aiokafka", "kafka_python"):
        assert clients(name).consume(topic, 15) == records * 5
    assert len(clients("kcat").consume(topic, 15)) == 15


def test_log_append_time(admin: AdminClient, broker: BrokerProcess, topic: str) -> None:
    create(admin, topic, configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    reports = send(broker, topic, b"a", b"b", timestamp=1_000_000, **{"compression.type": "lz4"})
    after = int(time.time() * 1000)
    for message in [*reports, *read(broker, topic, 2)]:
        kind, stamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before <= stamp <= after
    resource = ConfigResource(ResourceType.TOPIC, topic)
    resource.add_incremental_config(
        ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(60)
    send(broker, topic, b"c", timestamp=1_000_000)
    assert read(broker, topic, 3)[2].timestamp() == (TIMESTAMP_CREATE_TIME, 1_000_000)


def test_times_too_far_ahead(admin: AdminClient, broker: BrokerProcess, topic: str) -> None:
    now = int(time.time() * 1000)
    create(admin, topic)
    (taken,) = send(broker, topic, b"a", timestamp=now + 3_000_000)  # the default allows an hour
    assert taken.timestamp() == (TIMESTAMP_CREATE_TIME, now + 3_000_000)
    (refused,) = send(broker, topic, b"a", timestamp=now + 4_000_000)
    assert refused.name() == "INVALID_TIMESTAMP"
    create(admin, f"{topic}-strict", configs={"message.timestamp.after.max.ms": "1000"})
    (refused,) = send(broker, f"{topic}-strict", b"a", timestamp=now + 100_000)
    assert refused.name() == "INVALID_TIMESTAMP"
    assert len(read(broker, topic, 1)) == 1


def test_partitions_by_default_by_order_and_added(admin: AdminClient, broker: BrokerProcess, topic: str) -> None:
    def partitions(name: str) -> int:
        return len(admin.list_topics(name, timeout=60).topics[name].partitions)

    send(broker, f"{topic}-auto", b"value")
    create(admin, f"{topic}-default", -1)
    create(admin, topic, 2)
    assert [partitions(f"{topic}-auto"), partitions(f"{topic}-default"), partitions(topic)] == [4, 4, 2]
    send(broker, topic, b"kept")

    def grow(total: int, **more: Any) -> None:
        admin.create_partitions([NewPartitions(topic, total)], **more)[topic].result(60)

    grow(5, validate_only=True)
    assert partitions(topic) == 2
    for total in (1, 2):
        assert refusal(grow, total)[0] == "INVALID_PARTITIONS"
    grow(5)
    assert partitions(topic) == 5
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"in the new one", partition=4)
    assert producer.flush(120) == 0
    assert refusal(create, admin, f"{topic}-none", 0)[0] == "INVALID_PARTITIONS"


def test_validate_only_makes_nothing(admin: AdminClient, topic: str) -> None:
    create(admin, topic, 3, validate_only=True)
    assert topic not in admin.list_topics(timeout=60).topics
    assert refusal(create, admin, "a b", validate_only=True)[0] == "TOPIC_EXCEPTION"
    assert refusal(create, admin, topic, configs={"retention.ms": "soon"}, validate_only=True)[0] == "INVALID_CONFIG"
    create(admin, topic, 3)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    resource.add_incremental_config(ConfigEntry("retention.ms", "5", incremental_operation=AlterConfigOpType.SET))
    admin.incremental_alter_configs([resource], validate_only=True)[resource].result(60)
    assert own_configs(admin, topic) == {}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("retention.m", "1", "did you mean 'retention.ms'?"),
        ("preallocate", "perhaps", "must be true or false"),
        ("retention.ms", "-2", "must be a whole number from -1"),
        ("compression.type", "brotli", "must be one of producer"),
        ("cleanup.policy", "compress", "must be one of delete"),
    ],
)
def test_settings_that_do_not_exist_or_cannot_be(
    admin: AdminClient, topic: str, name: str, value: str, words: str
) -> None:
    code, text = refusal(create, admin, topic, configs={name: value})
    assert code == "INVALID_CONFIG"
    assert words in text
    create(admin, topic)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
    code, text = refusal(lambda: admin.incremental_alter_configs([resource])[resource].result(60))
    assert code == "INVALID_CONFIG"
    assert words in text
    assert own_configs(admin, topic) == {}
