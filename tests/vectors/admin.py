"""The administration requests of three clients, each once, against a topic of theirs."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin

TIMEOUT = 30
ATTEMPTS = 200
PAUSE = 0.05


def administer_kafka_python(bootstrap: str, topic: str) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    config = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic, configs={"retention.ms": "1000"})
    admin.create_topics([kafka.admin.NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "5000"})])
    admin.create_partitions({topic: kafka.admin.NewPartitions(3)})
    admin.describe_configs([config], include_synonyms=True)
    admin.alter_configs([config], incremental=True)
    admin.alter_configs([config], incremental=False)
    place = kafka.TopicPartition(topic, 0)
    admin.list_partition_offsets({place: kafka.admin.OffsetSpec.LATEST})
    admin.delete_records({place: 0})
    admin.describe_cluster()
    admin.describe_log_dirs()
    admin.describe_topics([topic])
    admin.delete_topics([topic])
    admin.close()


def administer_confluent(bootstrap: str, topic: str) -> None:
    lib = confluent_kafka.admin
    admin = lib.AdminClient({"bootstrap.servers": bootstrap})
    _finish(
        lambda: admin.create_topics(
            [lib.NewTopic(topic, 1, 1, config={"max.message.bytes": "5000"})], operation_timeout=10
        )
    )
    _finish(lambda: admin.create_partitions([lib.NewPartitions(topic, 3)], operation_timeout=10))
    _finish(lambda: admin.describe_configs([lib.ConfigResource(lib.ResourceType.TOPIC, topic)]))
    entry = lib.ConfigEntry("retention.ms", "1000", incremental_operation=lib.AlterConfigOpType.SET)
    resource = lib.ConfigResource(lib.ResourceType.TOPIC, topic, incremental_configs=[entry])
    _finish(lambda: admin.incremental_alter_configs([resource]))
    place = confluent_kafka.TopicPartition(topic, 0, 0)
    _finish(lambda: admin.list_offsets({place: lib.OffsetSpec.latest()}))
    _finish(lambda: admin.delete_records([place]))
    admin.describe_cluster().result(TIMEOUT)
    _finish(lambda: admin.delete_topics([topic]))


def _finish(ask: Callable[[], dict[Any, Future[Any]]]) -> None:
    """Ask until the broker has heard of the new topic, which it may answer before it does."""
    for _ in range(ATTEMPTS):
        try:
            for future in ask().values():
                future.result(TIMEOUT)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            time.sleep(PAUSE)
        else:
            return
    raise TimeoutError("the broker does not know its own topic")


def administer_aiokafka(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        lib = aiokafka.admin
        admin = lib.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        config = lib.config_resource.ConfigResource(
            lib.config_resource.ConfigResourceType.TOPIC, topic, configs={"retention.ms": "1000"}
        )
        await admin.create_topics([lib.NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "5000"})])
        await admin.create_partitions({topic: lib.NewPartitions(3)})
        await admin.describe_configs([config], include_synonyms=True)
        await admin.alter_configs([config])
        await admin.delete_records({aiokafka.TopicPartition(topic, 0): lib.RecordsToDelete(0)})
        await admin.describe_cluster()
        await admin.describe_topics([topic])
        await admin.delete_topics([topic])
        await admin.close()

    asyncio.run(run())
