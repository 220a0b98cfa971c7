"""A member of a group, in confluent-kafka: reads, commits, tells; leaves on SIGTERM."""

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat.members.report import Running, options, tell

asked = options()
settings = {
    "bootstrap.servers": asked.bootstrap,
    "group.id": asked.group,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": asked.session,
    "heartbeat.interval.ms": 300,
    "partition.assignment.strategy": asked.strategy,
    "topic.metadata.refresh.interval.ms": 1000,
    "reconnect.backoff.max.ms": 200,
}
if asked.instance:
    settings["group.instance.id"] = asked.instance


def partitions(found: list[TopicPartition]) -> list[int]:
    return sorted(each.partition for each in found)


consumer = Consumer(settings)
consumer.subscribe(
    [asked.topic],
    on_assign=lambda _, found: tell(assigned=partitions(found)),
    on_revoke=lambda _, found: tell(revoked=partitions(found)),
    on_lost=lambda _, found: tell(revoked=partitions(found)),
)
running = Running()
while running:
    messages = [message for message in consumer.consume(20, timeout=0.2) if message.error() is None]
    for message in messages:
        tell(read=[message.partition(), message.offset()])
    if messages:
        try:
            done = consumer.commit(asynchronous=False)
        except KafkaException as error:
            tell(refused=error.args[0].name())
        else:
            tell(committed={each.partition: each.offset for each in done if each.offset >= 0})
consumer.close()
tell(closed=True)
