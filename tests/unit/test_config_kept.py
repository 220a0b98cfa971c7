"""Kafka's settings of topics: each of its names is one of ours, and what has no effect is said in the docs."""

import re
from pathlib import Path

import pytest

from korvet_fast.config import read_settings
from korvet_fast.config_def import SETTINGS, TOPIC_SETTINGS
from korvet_fast.config_kept import KEPT
from korvet_fast.core.topic_config import TopicConfig

PAGE = Path(__file__).parents[2] / "docs" / "topic-settings.md"

# Kafka 4.1: https://kafka.apache.org/documentation/#topicconfigs, and those of 3.9 that 4.0 dropped.
OF_KAFKA = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)
OURS = {"durability", "storage.layout", "offset.sequence.bits"}


def test_every_topic_setting_of_kafka_is_known() -> None:
    assert TOPIC_SETTINGS.keys() == {*OF_KAFKA, *OURS}


def test_a_setting_without_effect_is_kept_and_shown() -> None:
    given = {row.topic: str(row.default).lower() for row in KEPT}
    config = TopicConfig(read_settings(), given)
    shown = {one.name: one.value for one in config.describe()}
    assert {name: shown[name] for name in given} == given == config.overrides


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row.topic)
def test_a_setting_without_effect_says_so(row: object) -> None:
    assert row in SETTINGS.values()
    assert not row.effect  # type: ignore[attr-defined]
    assert "no effect here" in row.doc  # type: ignore[attr-defined]
    assert row.parse(row.default) == row.default  # type: ignore[attr-defined]


def test_the_page_names_exactly_these() -> None:
    table = PAGE.read_text().partition("## Settings that are kept")[2]
    named = {name for line in table.splitlines() for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])}
    assert {row.topic for row in KEPT} | {"index.interval.bytes"} == named & TOPIC_SETTINGS.keys()


@pytest.mark.parametrize(
    ("policy", "deletes"),
    [("delete", True), ("compact", False), ("compact,delete", True), ("delete, compact", True), (" compact ", False)],
)
def test_compaction_alone_deletes_nothing(policy: str, deletes: bool) -> None:
    config = TopicConfig(read_settings(["log.retention.bytes=7"]), {"cleanup.policy": policy, "retention.ms": "5"})
    assert (config.retention_ms, config.retention_bytes) == ((5, 7) if deletes else (-1, -1))
    assert config.text("cleanup.policy") == policy.replace(" ", "")
    assert config.text("retention.ms") == "5"


def test_a_brokers_default_of_compact_holds_for_its_topics() -> None:
    assert TopicConfig(read_settings(["log.cleanup.policy=compact"]), {}).retention_ms == -1
