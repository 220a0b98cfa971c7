"""A topic's settings over the broker's."""

import pytest

from korvet_fast.config import Source, read_settings
from korvet_fast.config_def import SETTINGS, TOPIC_SETTINGS
from korvet_fast.core.topic_config import CODECS, TopicConfig
from korvet_fast.errors import KorvetError
from korvet_fast.store.types import LARGE


def test_a_topic_takes_the_brokers_value_until_it_has_its_own() -> None:
    settings = read_settings(["message.max.bytes=1000", "compression.type=zstd"])
    config = TopicConfig(settings, {"compression.type": "uncompressed", "retention.ms": "-1"})
    assert (config.max_message_bytes, config.compression, config.retention_ms) == (1000, 0, -1)
    assert config.overrides == {"compression.type": "uncompressed", "retention.ms": "-1"}


def test_what_is_kept_of_a_setting_is_its_value_not_what_was_written() -> None:
    given = {"retention.ms": " " * 32_000 + "7", "compression.type": "gzip" + " " * 32_000}
    assert TopicConfig(read_settings(), given).overrides == {"retention.ms": "7", "compression.type": "gzip"}


def test_every_compression_has_its_number() -> None:
    assert ("producer", *CODECS) == SETTINGS["compression.type"].choices


def test_what_an_append_looks_at() -> None:
    settings = read_settings()
    plain = TopicConfig(settings, {})
    assert plain.compression is None
    assert (plain.sync, plain.log_append_time, plain.copies, plain.strict) == (True, False, 1, False)
    assert plain.segment_limits == LARGE
    assert TopicConfig(settings, {"segment.bytes": "2000", "segment.ms": "5"}).segment_limits == (2000, 5)
    own = TopicConfig(settings, {"durability": "written", "message.timestamp.type": "LogAppendTime"})
    assert (own.sync, own.log_append_time) == (False, True)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("retention.m", "1", "did you mean 'retention.ms'"),
        ("num.partitions", "1", "topics have no setting"),
        ("log.index.interval.bytes", "1", "topics have no setting"),
        ("segment.bytes", "1023", "from 1024"),
        ("segment.ms", "0", "from 1"),
        ("cleanup.policy", "compact,compact", "one of delete"),
        ("retention.ms", "soon", "a whole number"),
        ("retention.ms", None, "is None"),
    ],
)
def test_a_wrong_setting_is_invalid_config(name: str, text: str | None, said: str) -> None:
    with pytest.raises(KorvetError, match=said) as caught:
        TopicConfig(read_settings(), {name: text})
    assert caught.value.error == "INVALID_CONFIG"


def test_describe_gives_sources_strongest_first() -> None:
    config = TopicConfig(read_settings(["log.retention.ms=5"]), {"retention.ms": "7", "durability": "written"})
    rows = {row.name: row for row in config.describe()}
    assert list(rows) == sorted(TOPIC_SETTINGS.keys() - {"storage.layout", "offset.sequence.bits"})
    assert rows["retention.ms"].synonyms == (
        ("retention.ms", "7", Source.TOPIC),
        ("log.retention.ms", "5", Source.FLAG),
        ("log.retention.ms", "604800000", Source.DEFAULT),
    )
    assert (rows["retention.ms"].value, rows["retention.ms"].source) == ("7", Source.TOPIC)
    assert rows["durability"].synonyms == (
        ("durability", "written", Source.TOPIC),
        ("durability", "server", Source.DEFAULT),
    )
    assert (rows["retention.bytes"].value, rows["retention.bytes"].source) == ("-1", Source.DEFAULT)
