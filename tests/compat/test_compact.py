"""A topic with cleanup.policy=compact keeps every record, whatever its retention: nothing is compacted yet."""

import time
from pathlib import Path

import pytest

from compat.record import Record
from compat.tools.programs import PATIENCE, Topics
from compat.world import STORES, open_world

OLD = 1_700_000_000_000  # ms


@pytest.mark.parametrize("store", STORES)
def test_a_compact_topic_outlives_its_retention(store: str, tmp_path: Path) -> None:
    records = [Record(b"key", b"%d" % number) for number in range(10)]
    times = [OLD + number for number in range(10)]
    limits = {"retention.ms": "1000", "retention.bytes": "1"}
    with open_world(store, tmp_path, "--set", "log.retention.check.interval.ms=100") as world:
        client, topics = world.client("confluent"), Topics(world.broker.bootstrap)
        for topic, policy in (("kept", "compact"), ("gone", "compact,delete")):
            client.ask("create_topic", topic=topic, partitions=1, configs={**limits, "cleanup.policy": policy})
        client.produce("kept", records, times=times)
        for _ in range(2):  # what is too old goes twice, so one check was whole
            client.produce("gone", records, times=times)
            deadline = time.monotonic() + PATIENCE
            while topics.records("gone"):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert topics.values("kept") == [record.value for record in records]
        assert topics.setting("kept", "cleanup.policy") == "compact"
