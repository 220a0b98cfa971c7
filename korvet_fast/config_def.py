"""All settings in one table: name, kind, default, legal values, and a sentence.

A row with a `topic` name is the broker's default for that setting of a topic
(https://kafka.apache.org/documentation/#topicconfigs pairs them so). The table is our own and no settings library's:
DescribeConfigs must report Kafka's kinds, sources and sentences.
"""

from korvet_fast.config_acl import ACLS
from korvet_fast.config_kept import KEPT
from korvet_fast.config_oauth import OAUTH
from korvet_fast.setting import Kind, Setting, Value, explain_unknown, show

__all__ = ["SETTINGS", "TOPIC_SETTINGS", "Kind", "Setting", "Value", "explain_unknown", "show"]


def _table(*rows: Setting) -> dict[str, Setting]:
    return {row.name: row for row in rows}


_DAY = 86_400_000
_MIB = 1 << 20

SETTINGS = _table(
    Setting(
        "node.id",
        Kind.INT,
        1,
        "This broker's number in the cluster. Left out, brokers over a shared store take the lowest that is free.",
    ),
    Setting(
        "broker.heartbeat.interval.ms",
        Kind.INT,
        2_000,
        "Time between two heartbeats that this broker sends to the others over the same store.",
        50,
    ),
    Setting(
        "broker.session.timeout.ms",
        Kind.INT,
        9_000,
        "A broker silent this long counts as dead: the others take over its partitions.",
        100,
    ),
    Setting(
        "replication.peers",
        Kind.LIST,
        "",
        "All brokers that keep copies of each other's files, this one included: id, host and port of each listener"
        " replica:// or replica+tls://. The same on every broker.",
        choices=("1@10.0.0.1:9192,2@10.0.0.2:9192,3@10.0.0.3:9192",),
        pattern=r"([0-9]{1,9}@[^@,]+:[0-9]{1,5}(,[0-9]{1,9}@[^@,]+:[0-9]{1,5})*)?",
    ),
    Setting(
        "replication.secret.file",
        Kind.STRING,
        "",
        "A file with the secret that all of replication.peers share: a program without it is refused as a peer.",
        choices=("/etc/korvet/secret",),
        pattern=r"[^\0]*",
    ),
    Setting(
        "security.inter.broker.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "How the brokers of replication.peers connect to each other: `PLAINTEXT`, to listeners replica://, or `SSL`, to"
        " listeners replica+tls://. With SSL they trust ssl.truststore.location (without it the system's authorities)"
        " and show ssl.keystore.location. The same on every broker.",
        choices=("PLAINTEXT", "SSL"),
    ),
    Setting(
        "default.replication.factor",
        Kind.INT,
        3,
        "Copies of a topic whose creator names no number, where replication.peers are set; at most as many as brokers.",
        1,
    ),
    Setting(
        "replica.max.lag",
        Kind.INT,
        0,
        "How many records a follower may be behind and still be in sync.",
    ),
    Setting(
        "replica.lag.timeout",
        Kind.INT,
        10_000,
        "How long, in ms, a follower may lag behind before it leaves the replicas in sync.",
        100,
    ),
    Setting(
        "follower.replication.throttled.rate",
        Kind.LONG,
        (1 << 63) - 1,
        "Bytes a second that a follower copies from one broker while it is not in sync.",
        1,
    ),
    Setting(
        "broker.rack",
        Kind.STRING,
        "",
        "The rack of this broker: consumers that name the same one (client.rack) may read here.",
        choices=("eu-west-1a",),
        pattern=r"[^\0]{0,249}",
    ),
    Setting(
        "replica.selector.class",
        Kind.STRING,
        "org.apache.kafka.common.replica.LeaderSelector",
        "Where consumers are told to read: at the leader, or at a follower in sync that stands in their rack.",
        choices=(
            "org.apache.kafka.common.replica.LeaderSelector",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        ),
    ),
    Setting("num.partitions", Kind.INT, 1, "Partitions of a topic whose creator names no number.", 1),
    Setting(
        "topic.partition.count.map",
        Kind.LIST,
        "",
        "Partitions of topics that clients of Kafka 0.7 make, by name, where they are not to have num.partitions.",
        choices=("clicks:8,orders:16",),
        pattern=r"([^:,]{1,249}:[1-9][0-9]{0,8}(,[^:,]{1,249}:[1-9][0-9]{0,8})*)?",
    ),
    Setting("max.partitions", Kind.INT, 20_000, "Partitions of all topics together that this broker takes.", 1),
    Setting(
        "controller.mutation.rate",
        Kind.INT,
        100,
        "Partitions that clients may create and delete a second; faster clients have to wait.",
        1,
    ),
    Setting(
        "controller.mutation.burst",
        Kind.INT,
        5_000,
        "Partitions that may be created and deleted at once after a rest. One topic may have more.",
        1,
    ),
    Setting(
        "auto.create.topics.enable", Kind.BOOLEAN, True, "Create an unknown topic when a client asks for it by name."
    ),
    Setting(
        "message.max.bytes",
        Kind.INT,
        1_048_588,
        "Largest record batch taken, in bytes as sent (compressed).",
        topic="max.message.bytes",
    ),
    Setting(
        "compression.type",
        Kind.STRING,
        "producer",
        "How batches are compressed at rest; `producer` keeps them as they came.",
        choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        topic="compression.type",
    ),
    Setting(
        "log.message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whether a record's time is its producer's, or the broker's at the append.",
        choices=("CreateTime", "LogAppendTime"),
        topic="message.timestamp.type",
    ),
    Setting(
        "log.message.timestamp.after.max.ms",
        Kind.LONG,
        3_600_000,
        "How far a CreateTime may lie after the broker's clock.",
        topic="message.timestamp.after.max.ms",
    ),
    Setting(
        "min.insync.replicas",
        Kind.INT,
        1,
        "Copies that acks=all must reach; a store that keeps fewer answers NOT_ENOUGH_REPLICAS.",
        1,
        topic="min.insync.replicas",
    ),
    Setting(
        "durability",
        Kind.STRING,
        "server",
        "What acks=all waits for and consumers read up to: `fsync`, on disk, survives the machine; `written`, perhaps"
        " only in memory, survives the broker; `server`, what the store is set up to give (files: fsync).",
        choices=("server", "fsync", "written"),
        topic="durability",
    ),
    Setting(
        "storage.layout",
        Kind.STRING,
        "store",
        "How a topic's records are kept: each as an entry of its own (`entries`), or in their batches (`batches`, with"
        " dense offsets), or as messages of Kafka 0.7, whose offsets are positions (`legacy`); `store` leaves it to the"
        " store.",
        choices=("store", "entries", "batches", "legacy"),
        topic="storage.layout",
        fixed=True,
    ),
    Setting(
        "offset.sequence.bits",
        Kind.INT,
        10,
        "Over Redis an offset is a time in ms and a sequence number: how many bits the sequence number has.",
        1,
        topic="offset.sequence.bits",
        highest=16,
        fixed=True,
    ),
    Setting(
        "log.cleanup.policy",
        Kind.LIST,
        "delete",
        "What happens to old records: `delete` removes them by time and size; `compact` alone keeps every record, as"
        " this version compacts nothing.",
        choices=("delete", "compact", "compact,delete", "delete,compact"),
        topic="cleanup.policy",
    ),
    Setting(
        "log.retention.ms",
        Kind.LONG,
        7 * _DAY,
        "Records older than this are deleted, by whole segments; -1 keeps them.",
        -1,
        topic="retention.ms",
    ),
    Setting(
        "log.retention.bytes",
        Kind.LONG,
        -1,
        "A partition's oldest segments are deleted while the rest is larger; -1 for no limit.",
        -1,
        topic="retention.bytes",
    ),
    Setting(
        "log.retention.check.interval.ms", Kind.LONG, 300_000, "Time between two checks for segments to delete.", 1
    ),
    Setting(
        "log.segment.bytes",
        Kind.INT,
        1 << 30,
        "Size at which a partition begins a new segment file.",
        1024,
        topic="segment.bytes",
    ),
    Setting(
        "log.roll.ms",
        Kind.LONG,
        7 * _DAY,
        "Span of record times, in ms, at which a partition begins a new segment file.",
        1,
        topic="segment.ms",
    ),
    Setting(
        "log.index.interval.bytes",
        Kind.INT,
        4096,
        "Bytes of a segment between two rows of its index. The broker's own counts; a topic's is kept and shown.",
        1,
        topic="index.interval.bytes",
    ),
    Setting(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        3_000,
        "How long a group that was empty waits for more members before it forms.",
    ),
    Setting("text.session.timeout.ms", Kind.INT, 10_000, "How long a member of a text group may be silent.", 1),
    Setting(
        "text.line.max.bytes",
        Kind.INT,
        1 << 20,
        "Bytes that a request of the text protocol may have; a longer one is refused, and its connection closed.",
        256,
        highest=1 << 30,
    ),
    Setting("group.min.session.timeout.ms", Kind.INT, 6_000, "Shortest session that a member may ask for.", 1),
    Setting("group.max.session.timeout.ms", Kind.INT, 1_800_000, "Longest session that a member may ask for.", 1),
    Setting("group.max.size", Kind.INT, 10_000, "Members that a group may have.", 1),
    Setting(
        "max.groups",
        Kind.INT,
        20_000,
        "Groups that this broker coordinates; more are refused. Groups that hold only commits may be three quarters of"
        " them.",
        1,
    ),
    Setting(
        "group.memory.max.bytes",
        Kind.LONG,
        32 * _MIB,
        "Approximate memory that a group's members, or its commits, may fill; requests beyond it are refused.",
        10_000,
    ),
    Setting(
        "groups.memory.max.bytes",
        Kind.LONG,
        256 * _MIB,
        "Approximate memory that all groups of the broker may fill together; requests beyond it are refused.",
        10_000,
    ),
    Setting(
        "group.consumer.session.timeout.ms",
        Kind.INT,
        45_000,
        "How long a member of the consumer protocol may be silent.",
        1,
    ),
    Setting(
        "group.consumer.heartbeat.interval.ms",
        Kind.INT,
        5_000,
        "Time between two heartbeats that the broker asks of members of the consumer protocol.",
        1,
    ),
    Setting("group.consumer.max.size", Kind.INT, 10_000, "Members that a group of that protocol may have.", 1),
    Setting(
        "group.consumer.assignors",
        Kind.LIST,
        "uniform,range",
        "Assignors that members of the consumer protocol may ask for; members that ask for none get the first.",
        choices=("uniform,range", "range,uniform", "uniform", "range"),
    ),
    Setting("offset.metadata.max.bytes", Kind.INT, 4096, "Longest text that may be committed with an offset.", 0),
    Setting(
        "offsets.retention.minutes",
        Kind.INT,
        7 * 24 * 60,
        "How long commits are kept after their group became empty.",
        1,
    ),
    Setting("offsets.retention.check.interval.ms", Kind.LONG, 600_000, "Time between two checks for old commits.", 1),
    Setting(
        "max.producers",
        Kind.INT,
        100_000,
        "Idempotent producers remembered, counted once for each partition they write to. Beyond it, the producer"
        " that was silent longest is forgotten, first those that sent one batch only.",
        1,
    ),
    Setting("producer.id.expiration.ms", Kind.INT, _DAY, "An idempotent producer silent this long is forgotten.", 1),
    Setting(
        "socket.request.max.bytes",
        Kind.INT,
        100 * _MIB,
        "Largest request accepted; the connection of a larger one is closed.",
        1,
    ),
    Setting("queued.max.request.bytes", Kind.LONG, 128 * _MIB, "Bytes of all requests held at a time.", 1),
    Setting("fetch.max.bytes", Kind.INT, 55 * _MIB, "Bytes of records in one answer to Fetch.", 1024),
    Setting("max.connections", Kind.INT, 10_000, "Open connections on all listeners together.", 1),
    Setting("max.connections.per.ip", Kind.INT, 4_000, "Open connections from one address.", 1),
    Setting(
        "max.connection.creation.rate",
        Kind.INT,
        2_000,
        "New connections a second; more wait, behind all others those of an address that made a tenth of them.",
        1,
    ),
    Setting(
        "http.token.file",
        Kind.STRING,
        "",
        "A file with the token that reads more than health on a listener http://, as Authorization: Bearer TOKEN. On an"
        " address that other machines reach there is no such listener without it.",
        choices=("/etc/korvet/token",),
        pattern=r"[^\0]*",
    ),
    Setting(
        "metrics.max.partitions",
        Kind.INT,
        20_000,
        "Partitions that have rows of their own in /metrics, and the same number of committed offsets. Topics beyond it"
        " count in the totals only.",
    ),
    Setting(
        "zookeeper.session.timeout.ms",
        Kind.INT,
        6_000,
        "How long ZooKeeper keeps the nodes of a broker that is silent.",
        100,
    ),
    Setting(
        "zookeeper.connection.timeout.ms",
        Kind.INT,
        6_000,
        "How long a start waits for ZooKeeper before the broker serves without it.",
        1,
    ),
    Setting(
        "log.level",
        Kind.STRING,
        "info",
        "The lowest level that the broker logs: `warning`, a person should act; `info`, also what changes data;"
        " `debug`, also every connection. While the broker runs: korvet-fast config set korvet_fast=debug --loggers.",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting(
        "ssl.keystore.location",
        Kind.STRING,
        "",
        "A PEM file with the private key and the certificates of listeners with TLS. Read again when it changes.",
        choices=("/etc/korvet/server.pem",),
        pattern=r"[^\0]*",
    ),
    Setting(
        "ssl.truststore.location",
        Kind.STRING,
        "",
        "A PEM file with the authorities whose certificates clients may show. Read again when it changes.",
        choices=("/etc/korvet/ca.pem",),
        pattern=r"[^\0]*",
    ),
    Setting(
        "ssl.client.auth",
        Kind.STRING,
        "none",
        "Whether clients of listeners with TLS show a certificate: they are not asked, they may, or they have to.",
        choices=("none", "requested", "required"),
    ),
    Setting(
        "ssl.principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How a client is named by the subject of its certificate, as in Kafka: RULE:PATTERN/REPLACEMENT/ with L or U "
        "behind it, DEFAULT is the whole subject. The first rule that fits counts; without one the client is refused.",
        choices=("RULE:^CN=(.*?),.*$/$1/L,DEFAULT",),
        pattern=r"[^\0]*",
    ),
    Setting(
        "sasl.enabled.mechanisms",
        Kind.LIST,
        "SCRAM-SHA-256,SCRAM-SHA-512",
        "How clients of listeners with SASL may log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. With PLAIN "
        "they send their passwords, with OAUTHBEARER a token that a provider has signed.",
        choices=("SCRAM-SHA-512", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "OAUTHBEARER"),
        pattern=r"(PLAIN|SCRAM-SHA-(256|512)|OAUTHBEARER)(,(PLAIN|SCRAM-SHA-(256|512)|OAUTHBEARER))*",
    ),
    Setting(
        "sasl.server.max.receive.size",
        Kind.INT,
        512 << 10,
        "Largest request of a client that has not logged in yet, in bytes; the connection of a larger one is closed.",
        1024,
        highest=512 << 10,
    ),
    Setting(
        "connection.failed.authentication.delay.ms",
        Kind.INT,
        100,
        "How long a client that could not log in waits for its answer, and the end of its connection.",
        highest=10_000,
    ),
    Setting(
        "connections.max.reauth.ms",
        Kind.LONG,
        0,
        "How long a login by SASL holds: a client that uses its connection after that without a new login is cut off."
        " 0: as long as its connection.",
    ),
    Setting("connections.max.idle.ms", Kind.LONG, 600_000, "A connection silent this long is closed.", 1),
    *OAUTH,
    *ACLS,
    *KEPT,
)

TOPIC_SETTINGS = {row.topic: row for row in SETTINGS.values() if row.topic}
