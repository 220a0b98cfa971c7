"""The one table of the metrics served: docs/metrics.md is made from it, and a test holds the dashboard against it.

Where Kafka has a metric, the name is the one that the JMX exporter makes of it with its example configurations for
Kafka (`examples/kafka-2_0_0.yml` there, `kafka-kraft-3_0_0.yml` for the metadata log). Lag has the names of
kafka_exporter, as Kafka's brokers do not tell it.
"""

from enum import StrEnum
from typing import Final, NamedTuple

EXPORTER: Final = "kafka_exporter"


class Kind(StrEnum):
    """A metric's type, in Prometheus's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"  # two rows: the name with _count and with _sum


class Metric(NamedTuple):
    """A metric: its name, its type, its labels, a sentence, and Kafka's MBean, or whose name it is ("": ours)."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    doc: str
    source: str = ""


def _topic(name: str, doc: str, mbean: str) -> Metric:
    full = f"kafka.server:type=BrokerTopicMetrics,name={mbean}"
    return Metric(f"kafka_server_brokertopicmetrics_{name}_total", Kind.COUNTER, ("topic",), doc, full)


def _gauge(name: str, labels: tuple[str, ...], doc: str, source: str = "") -> Metric:
    return Metric(name, Kind.GAUGE, labels, doc, source)


_PARTITION: Final = ("topic", "partition")
_GROUP: Final = ("consumergroup", *_PARTITION)

BROKER_STATE = _gauge(
    "kafka_server_kafkaserver_brokerstate",
    (),
    "1 starting, 3 running, 6 the others take over, 7 stopping.",
    "kafka.server:type=KafkaServer,name=BrokerState",
)
MESSAGES_IN = _topic(
    "messagesin", "Records that were appended since the start. Without a topic: all topics.", "MessagesInPerSec"
)
BYTES_IN = _topic(
    "bytesin", "Bytes of record batches that were appended. Without a topic: all topics.", "BytesInPerSec"
)
BYTES_OUT = _topic(
    "bytesout", "Bytes of records that Fetch gave to consumers. Without a topic: all topics.", "BytesOutPerSec"
)
FAILED_PRODUCES = Metric(
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    Kind.COUNTER,
    (),
    "Produce requests of Kafka's protocol of which a partition was refused or failed, for whatever reason.",
    "kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec",
)
REQUESTS = Metric(
    "kafka_network_requestmetrics_requests_total",
    Kind.COUNTER,
    ("request",),
    "Requests of Kafka's protocol.",
    "kafka.network:type=RequestMetrics,name=RequestsPerSec",
)
REQUEST_TIME = Metric(
    "kafka_network_requestmetrics_totaltimems",
    Kind.SUMMARY,
    ("request",),
    "Milliseconds from a whole request to its answer, of one request in 16; waits for its turn, for a flush or for"
    " records count.",
    "kafka.network:type=RequestMetrics,name=TotalTimeMs",
)
QUEUE_TIME = Metric(
    "kafka_network_requestmetrics_requestqueuetimems",
    Kind.SUMMARY,
    ("request",),
    "Milliseconds that a whole request waited for its beginning: for its turn, for memory, for earlier requests of its"
    " connection, or as its client was throttled. 0 for one that begins when it is read, or within a millisecond.",
    "kafka.network:type=RequestMetrics,name=RequestQueueTimeMs",
)
FLUSH_TIME = Metric(
    "kafka_log_logflushstats_logflushrateandtimems",
    Kind.SUMMARY,
    (),
    "Milliseconds that the disk took for a flush of a log, those of the registry included; one flush answers all"
    " that wait for it. Only of a store in files.",
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
)
ROUND_TRIP_TIME = Metric(
    "korvet_redis_roundtriptimems",
    Kind.SUMMARY,
    (),
    "Milliseconds from commands that were given to the connection together (a transaction, a read) to their answers."
    " Only of a store in Redis.",
)
SYNC_TIME = Metric(
    "korvet_redis_synctimems",
    Kind.SUMMARY,
    (),
    "Milliseconds that Redis took to say that records are kept as acks=all asks (WAITAOF, WAIT); one round answers all"
    " that wait for it.",
)
THROTTLED = Metric(
    "korvet_throttled_requests_total",
    Kind.COUNTER,
    ("quota",),
    "Requests beyond a client's quota: producer_byte_rate, consumer_byte_rate, request_percentage or"
    " controller_mutation_rate.",
)
AUDIT_DROPPED = Metric(
    "korvet_audit_dropped_lines_total",
    Kind.COUNTER,
    (),
    "Lines of audit.log.file that were dropped, as more came than can be written, or the disk took none.",
)
MEMORY_USED = _gauge(
    "kafka_network_socketserver_memorypoolused",
    (),
    "Bytes of queued.max.request.bytes that requests and answers hold.",
    "kafka.network:type=SocketServer,name=MemoryPoolUsed",
)
MEMORY_AVAILABLE = _gauge(
    "kafka_network_socketserver_memorypoolavailable",
    (),
    "Bytes of queued.max.request.bytes that are free.",
    "kafka.network:type=SocketServer,name=MemoryPoolAvailable",
)
CONNECTIONS = _gauge("korvet_connections", (), "Open connections of clients.")
CERTIFICATE_END = _gauge(
    "korvet_certificate_not_after_timestamp_seconds",
    ("file", "subject"),
    "When a certificate ends, in seconds since 1970: of those that listeners with TLS show, and of the authorities in"
    " ssl.truststore.location.",
)
LEADERS = _gauge(
    "kafka_server_replicamanager_leadercount",
    (),
    "Partitions that this broker leads.",
    "kafka.server:type=ReplicaManager,name=LeaderCount",
)
PARTITIONS = _gauge(
    "kafka_server_replicamanager_partitioncount",
    (),
    "Partitions that this broker leads or has a copy of.",
    "kafka.server:type=ReplicaManager,name=PartitionCount",
)
UNDER_REPLICATED = _gauge(
    "kafka_server_replicamanager_underreplicatedpartitions",
    (),
    "Partitions led here with copies that are not in sync, or no longer keep up.",
    "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
)
OFFLINE = _gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    (),
    "Partitions without a leader that answers, as this broker sees them.",
    "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
)
TOPICS = _gauge(
    "kafka_controller_kafkacontroller_globaltopiccount",
    (),
    "Topics of the cluster.",
    "kafka.controller:type=KafkaController,name=GlobalTopicCount",
)
ALL_PARTITIONS = _gauge(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    (),
    "Partitions of the cluster.",
    "kafka.controller:type=KafkaController,name=GlobalPartitionCount",
)
ACTIVE_CONTROLLERS = _gauge(
    "kafka_controller_kafkacontroller_activecontrollercount",
    (),
    "1 at the broker that leads the metadata log (without copies: that is named as controller), else 0.",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
)
METADATA_LEADER = _gauge(
    "kafka_server_raftmetrics_current_leader",
    (),
    "The id of the broker that leads the metadata log; -1 while none does that answers this broker.",
    "kafka.server:type=raft-metrics,attribute=current-leader",
)
LOSSES = _gauge(
    "korvet_losses",
    (),
    "Losses of stored records that this broker found since its start, 10,000 at most; the log names each.",
)
LEFT_OUT = _gauge(
    "korvet_metrics_left_out", (), "Topics and committed offsets that have no rows here, beyond metrics.max.partitions."
)
LOG_END = _gauge(
    "kafka_log_log_logendoffset",
    _PARTITION,
    "The offset after the last record.",
    "kafka.log:type=Log,name=LogEndOffset",
)
LOG_START = _gauge(
    "kafka_log_log_logstartoffset", _PARTITION, "The first offset.", "kafka.log:type=Log,name=LogStartOffset"
)
LOG_SIZE = _gauge("kafka_log_log_size", _PARTITION, "Bytes of the log at rest.", "kafka.log:type=Log,name=Size")
HIGH_WATERMARK = _gauge(
    "kafka_topic_partition_current_offset",
    _PARTITION,
    "The high watermark: consumers read the records below it.",
    EXPORTER,
)
FETCHER_LAG = _gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    _PARTITION,
    "Offsets that a copy kept here is behind its leader; -1 where that is not known.",
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
)
GROUPS = _gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    (),
    "Groups that this broker coordinates.",
    "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
)
COMMITTED = _gauge("kafka_consumergroup_current_offset", _GROUP, "The offset that the group committed.", EXPORTER)
LAG = _gauge(
    "kafka_consumergroup_lag",
    _GROUP,
    "The high watermark minus the committed offset, where this broker leads the partition.",
    EXPORTER,
)

METRICS: Final = (
    BROKER_STATE,
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    FAILED_PRODUCES,
    REQUESTS,
    REQUEST_TIME,
    QUEUE_TIME,
    FLUSH_TIME,
    ROUND_TRIP_TIME,
    SYNC_TIME,
    THROTTLED,
    AUDIT_DROPPED,
    MEMORY_USED,
    MEMORY_AVAILABLE,
    CONNECTIONS,
    CERTIFICATE_END,
    LEADERS,
    PARTITIONS,
    UNDER_REPLICATED,
    OFFLINE,
    TOPICS,
    ALL_PARTITIONS,
    ACTIVE_CONTROLLERS,
    METADATA_LEADER,
    LOSSES,
    LEFT_OUT,
    LOG_END,
    LOG_START,
    LOG_SIZE,
    HIGH_WATERMARK,
    FETCHER_LAG,
    GROUPS,
    COMMITTED,
    LAG,
)
