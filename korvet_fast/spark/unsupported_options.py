"""Options of Kafka's clients that this source does not have: some change nothing, others raise an error."""

import difflib
import logging
from collections.abc import Iterable

from korvet_fast.errors import SettingError

# Options of Kafka's clients for things that this source does not do: it accepts them with a warning.
WITHOUT_EFFECT = {
    "groupidprefix": "no consumer group is joined",
    "kafka.client.id": "the client is always called korvet-fast",
    "kafka.client.dns.lookup": "every address is tried",
    "kafka.connections.max.idle.ms": "a worker process keeps its connections",
    "kafka.client.rack": "partitions are read from their leaders",
    "kafka.default.api.timeout.ms": "kafka.request.timeout.ms and kafkaConsumer.pollTimeoutMs bound every wait",
    "kafka.check.crcs": "checksums are always verified",
    "kafka.exclude.internal.topics": "a pattern never fits internal topics",
    "kafka.allow.auto.create.topics": "reading makes no topic",
    "kafka.partition.assignment.strategy": "no consumer group is joined",
    "kafka.group.instance.id": "no consumer group is joined",
    "kafka.fetch.min.bytes": "only what is there already is read",
    "kafka.max.poll.records": "records come as Arrow batches",
    "kafka.max.poll.interval.ms": "no consumer group is joined",
    "kafka.session.timeout.ms": "no consumer group is joined",
    "kafka.heartbeat.interval.ms": "no consumer group is joined",
    "kafka.metadata.max.age.ms": "leaders are asked for when they are needed",
    "kafka.receive.buffer.bytes": "the system chooses",
    "kafka.send.buffer.bytes": "the system chooses",
    "kafka.reconnect.backoff.ms": "attempts are 100 ms apart",
    "kafka.reconnect.backoff.max.ms": "attempts are 100 ms apart",
    "kafka.retry.backoff.ms": "attempts are 100 ms apart",
    "kafka.retry.backoff.max.ms": "attempts are 100 ms apart",
    "kafka.linger.ms": "a task sends what Spark hands over at a time",
    "kafka.buffer.memory": "what is not answered is bounded by requests, five for each broker",
    "kafka.max.block.ms": "a task waits kafka.request.timeout.ms for an answer",
    "kafka.max.in.flight.requests.per.connection": "there are up to five, in order",
    "kafka.retries": "attempts go on until kafka.delivery.timeout.ms",
    "kafka.compression.gzip.level": "the level is fixed",
    "kafka.compression.lz4.level": "the level is fixed",
    "kafka.compression.zstd.level": "the level is fixed",
}
SPARKS_OWN = ("checkpointlocation", "queryname")  # Spark passes these to the sink of a stream too
# Options that Spark's Kafka source refuses too, and what to write instead.
INSTEAD = {
    "kafka.auto.offset.reset": "say where to begin with 'startingOffsets'",
    "kafka.enable.auto.commit": "where a stream is, is in its checkpoint",
    "kafka.key.deserializer": "keys are read as binary; cast them in Spark",
    "kafka.value.deserializer": "values are read as binary; cast them in Spark",
    "kafka.key.serializer": "keys are written as they are, string or binary; cast them in Spark",
    "kafka.value.serializer": "values are written as they are, string or binary; cast them in Spark",
    "kafka.interceptor.classes": "there are no interceptors; transform the rows in Spark",
    "kafka.partitioner.class": "keys decide as Kafka's clients have it; name partitions in a column 'partition'",
    "kafka.partitioner.ignore.keys": "keys decide; name partitions in a column 'partition'",
    "kafka.transactional.id": "there are no transactions, and writes are at least once",
    "path": "topics are named by 'subscribe' when reading and 'topic' when writing; leave the path out",
}

logger = logging.getLogger(__name__)


def check_unsupported(name: str, use: str, known: Iterable[str]) -> None:
    """Warn of an option that changes nothing. Raises `SettingError` for every other option.

    `name`: in lower case. `use`: what the options are for, in words. `known`: the options to suggest instead.
    """
    if name in WITHOUT_EFFECT:
        logger.warning("option %r has no effect: %s", name, WITHOUT_EFFECT[name])
    elif name in INSTEAD:
        raise SettingError(f"option {name!r} cannot be given: {INSTEAD[name]}")
    elif name not in SPARKS_OWN:
        here = {each.lower(): each for each in known}
        close = difflib.get_close_matches(name[:80], here, 1, 0.5)
        nearest = f"; did you mean {here[close[0]]!r}?" if close else ""
        raise SettingError(f"there is no option {name[:80]!r} for {use}{nearest}")
