"""MirrorMaker 2 from one broker to another: records, settings and offsets of groups; killed and started again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.tools.programs import Topics, running
from compat.world import World, open_world

pytestmark = pytest.mark.timeout(600)
_SETTINGS = """
clusters=a,b
a.bootstrap.servers={a}
b.bootstrap.servers={b}
a->b.enabled=true
b->a.enabled=false
a->b.topics=in
a->b.groups=readers
tasks.max=1
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
offset.lag.max=0
refresh.topics.interval.seconds=2
refresh.groups.interval.seconds=2
emit.checkpoints.interval.seconds=1
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
offset.flush.interval.ms=300
session.timeout.ms=6000
heartbeat.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
"""


@pytest.fixture
def copies(world: World, tmp_path: Path) -> Iterator[Topics]:
    """The topics of a second broker, over the same kind of store."""
    with open_world(world.store, tmp_path / "second") as second:
        yield Topics(second.broker.bootstrap)


def test_mirror_maker_2(topics: Topics, copies: Topics, tmp_path: Path) -> None:
    settings = tmp_path / "mirror.properties"
    settings.write_text(_SETTINGS.format(a=topics.bootstrap, b=copies.bootstrap))
    topics.feed("in", range(20))
    originals = topics.records("in")
    topics.commit("readers", "in", originals[25].offset())
    with running(
        "java_programs", tmp_path / "log", "org.apache.kafka.connect.mirror.MirrorMaker", str(settings)
    ) as mirror:
        mirror.until(lambda: copies.values("a.in") == topics.values("in"))
        mirror.until(lambda: copies.committed("readers", "a.in") > 0)
        mirror.until(lambda: noted(copies) == originals[-1].offset())
        mirror.kill()
        topics.feed("in", range(20, 25))
        mirror.start()
        mirror.until(lambda: len(copies.records("a.in")) >= 50)
    assert copies.values("a.in") == topics.values("in")
    # It translates to a place not after the group's, as a sync may be older: a reader there misses nothing.
    unread = [message.value() for message in originals[25:]]
    left = [message.value() for message in copies.records("a.in", copies.committed("readers", "a.in"))]
    assert left[-len(unread) - 10 : -10] == unread
    assert copies.setting("mm2-offsets.a.internal", "cleanup.policy") == "compact"


def noted(copies: Topics) -> int:
    """The last offset of `in` that it has noted as copied; -1: none. It copies its own heartbeats as well."""
    rows = copies.records("mm2-offsets.a.internal")
    found = [json.loads(row.value() or b"")["offset"] for row in rows if b'"topic":"in"' in (row.key() or b"")]
    return int(max(found, default=-1))
