"""Kafka's settings of topics that have no effect here: accepted, kept and shown, as its tools set and ask them.

Names, kinds and defaults are those of Kafka 4.1 (TopicConfig.java, LogConfig.java, ServerTopicConfigSynonyms.java),
and of 3.9 for the three that 4.0 dropped. Why each has no effect is said in docs/topic-settings.md.
"""

from typing import Final

from korvet_fast.setting import Kind, Setting, Value

NO_EFFECT: Final = " It is kept and shown, and has no effect here."

_NO_LIMIT: Final = (1 << 63) - 1
_DAY: Final = 86_400_000
_REPLICAS: Final = r"(\*|none|[0-9]{1,9}:[0-9]{1,9}(,[0-9]{1,9}:[0-9]{1,9})*)?"


def _kept(
    name: str,
    topic: str,
    kind: Kind,
    default: Value,
    doc: str,
    lowest: int = 0,
    highest: int | None = None,
    choices: tuple[str, ...] = (),
    pattern: str = "",
) -> Setting:
    return Setting(name, kind, default, doc + NO_EFFECT, lowest, choices, topic, highest, pattern=pattern, effect=False)


KEPT: Final = (
    _kept(
        "log.cleaner.min.cleanable.ratio",
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        "0.5",
        "Share of a log that must be out of date before it is compacted.",
        choices=("0.5",),
        pattern=r"0(\.[0-9]{1,17})?|1(\.0{1,17})?",
    ),
    _kept(
        "log.cleaner.delete.retention.ms",
        "delete.retention.ms",
        Kind.LONG,
        _DAY,
        "How long compaction leaves the mark that a key was deleted.",
    ),
    _kept(
        "log.cleaner.min.compaction.lag.ms",
        "min.compaction.lag.ms",
        Kind.LONG,
        0,
        "How long a record stays as it is before compaction.",
    ),
    _kept(
        "log.cleaner.max.compaction.lag.ms",
        "max.compaction.lag.ms",
        Kind.LONG,
        _NO_LIMIT,
        "How long a record may wait for compaction.",
        1,
    ),
    _kept(
        "unclean.leader.election.enable",
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        False,
        "Whether a replica that is not in sync may become the leader.",
    ),
    _kept(
        "log.message.timestamp.before.max.ms",
        "message.timestamp.before.max.ms",
        Kind.LONG,
        _NO_LIMIT,
        "How far a CreateTime may lie before the broker's clock.",
    ),
    _kept(
        "log.message.timestamp.difference.max.ms",
        "message.timestamp.difference.max.ms",
        Kind.LONG,
        _NO_LIMIT,
        "How far a CreateTime may lie from the broker's clock (before Kafka 4.0).",
    ),
    _kept(
        "log.message.downconversion.enable",
        "message.downconversion.enable",
        Kind.BOOLEAN,
        True,
        "Whether records are rewritten for consumers of old formats (before Kafka 4.0).",
    ),
    _kept(
        "log.message.format.version",
        "message.format.version",
        Kind.STRING,
        "3.0-IV1",
        "The format of records at rest (before Kafka 4.0).",
        choices=("3.0-IV1",),
        pattern=r"[0-9][0-9A-Za-z.-]{0,19}",
    ),
    _kept(
        "log.index.size.max.bytes",
        "segment.index.bytes",
        Kind.INT,
        10 << 20,
        "Size of a segment's index.",
        4,
    ),
    _kept(
        "log.roll.jitter.ms",
        "segment.jitter.ms",
        Kind.LONG,
        0,
        "Most that is taken off segment.ms by chance.",
    ),
    _kept(
        "log.segment.delete.delay.ms",
        "file.delete.delay.ms",
        Kind.LONG,
        60_000,
        "How long a deleted segment stays on disk.",
    ),
    _kept(
        "log.flush.interval.messages",
        "flush.messages",
        Kind.LONG,
        _NO_LIMIT,
        "Records after which a log is flushed.",
        1,
    ),
    _kept("log.flush.interval.ms", "flush.ms", Kind.LONG, _NO_LIMIT, "Time after which a log is flushed."),
    _kept(
        "log.preallocate",
        "preallocate",
        Kind.BOOLEAN,
        False,
        "Whether a new segment's file has its full size at once.",
    ),
    _kept(
        "compression.gzip.level",
        "compression.gzip.level",
        Kind.INT,
        -1,
        "How hard gzip compresses.",
        -1,
        9,
    ),
    _kept("compression.lz4.level", "compression.lz4.level", Kind.INT, 9, "How hard lz4 compresses.", 1, 17),
    _kept("compression.zstd.level", "compression.zstd.level", Kind.INT, 3, "How hard zstd compresses.", -131_072, 22),
    _kept(
        "leader.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        Kind.LIST,
        "",
        "Replicas whose leaders send them no more than a rate.",
        choices=("0:1,1:2", "*"),
        pattern=_REPLICAS,
    ),
    _kept(
        "follower.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        Kind.LIST,
        "",
        "Replicas that copy no more than a rate.",
        choices=("0:1,1:2", "*"),
        pattern=_REPLICAS,
    ),
    _kept(
        "remote.storage.enable",
        "remote.storage.enable",
        Kind.BOOLEAN,
        False,
        "Whether old segments move to tiered storage.",
    ),
    _kept(
        "log.local.retention.ms",
        "local.retention.ms",
        Kind.LONG,
        -2,
        "How long segments stay here that tiered storage has.",
        -2,
    ),
    _kept(
        "log.local.retention.bytes",
        "local.retention.bytes",
        Kind.LONG,
        -2,
        "Bytes of segments that stay here though tiered storage has them.",
        -2,
    ),
)
