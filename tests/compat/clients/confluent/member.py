"""A member of a group, in confluent-kafka: reads, commits, tells; leaves on SIGTERM."""

from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from compat.clients.lines import Options, Running, tell
from compat.clients.security import confluent_settings

# librdkafka's own short names.
_NAMES = {"UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION", "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE"}

# librdkafka (2.16) tries a commit again after retry.backoff.ms. Where the answer to FindCoordinator comes later than
# that, as behind a fetch on the same connection, the commit is thrown away with the connection that is then made anew,
# the new coordinator is taken for dead because of that, and all begins again.
_LATER = {"retry.backoff.ms": 1000, "retry.backoff.max.ms": 1000, "fetch.wait.max.ms": 200}


def describe_error(error: Exception) -> str:
    """Kafka's name of it."""
    if not isinstance(error, KafkaException):
        return repr(error)
    name: str = error.args[0].name()
    return _NAMES.get(name, name)


def run(asked: Options) -> None:
    """Until SIGTERM."""
    running = Running()
    consumer = Consumer(_settings(asked))
    consumer.subscribe(
        [asked.topic],
        on_assign=lambda _, found: tell(assigned=_partitions(found)),
        on_revoke=lambda _, found: tell(revoked=_partitions(found)),
        on_lost=lambda _, found: tell(revoked=_partitions(found)),
    )
    due = False  # something was read, and is not committed
    while running:
        found = consumer.consume(20, timeout=0.2)
        messages = [message for message in found if message.error() is None]
        for message in messages:
            tell(read=[message.partition(), message.offset()])
        if any(_is_unanswered(message.error()) for message in found):
            _ask_again(consumer, one_by_one=asked.protocol == "consumer" or asked.strategy == "cooperative-sticky")
        if due or messages:
            due = not _commit(consumer)
    consumer.close()
    tell(closed=True)


def _commit(consumer: Consumer) -> bool:
    """Commit what was read of the partitions it has; False if that was refused, and is to be tried again."""
    try:
        done = consumer.commit(asynchronous=False)
    except KafkaException as error:
        name = describe_error(error)
        if name == "_NO_OFFSET":  # what it had read has been taken away, or is committed
            return True
        tell(refused=name)
        return False
    tell(committed={each.partition: each.offset for each in done if each.offset >= 0})
    return True


def _is_unanswered(error: KafkaError | None) -> bool:
    """Whether the coordinator did not say where to begin: librdkafka does not ask again by itself."""
    return error is not None and "Failed to fetch committed offset" in error.str()


def _ask_again(consumer: Consumer, *, one_by_one: bool) -> None:
    """Go on where it is in the partitions it has, and where the group is in those that it has not begun.

    `one_by_one`: the group's protocol gives and takes single partitions.
    """
    places = consumer.position(consumer.assignment())
    if one_by_one:
        consumer.incremental_unassign(places)
        consumer.incremental_assign(places)
    else:
        consumer.assign(places)


def _settings(asked: Options) -> dict[str, Any]:
    settings = {
        "bootstrap.servers": asked.bootstrap,
        "group.id": asked.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 1000,
        "reconnect.backoff.max.ms": 200,
        **_LATER,
        **confluent_settings(),
    }
    if asked.instance:
        settings["group.instance.id"] = asked.instance
    if asked.protocol == "consumer":
        return settings | {"group.protocol": "consumer"}  # the broker decides on times and assignment
    own = {"session.timeout.ms": asked.session, "heartbeat.interval.ms": 300}
    return settings | own | {"partition.assignment.strategy": asked.strategy}


def _partitions(found: list[TopicPartition]) -> list[int]:
    return sorted(each.partition for each in found)
