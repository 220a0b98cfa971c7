"""Topics and groups administered, commits read back."""

import time
from collections.abc import Callable

import pytest

from compat.drivers import DriverError
from compat.group_scene import play
from compat.record import Record
from compat.world import Stage

METADATA = "a note é"


def refused(name: str, ask: Callable[[], object]) -> None:
    """Asking raises the error with this name in Kafka."""
    with pytest.raises(DriverError, match=name):
        ask()


def topics(stage: Stage) -> None:
    def create(topic: str, **configs: str) -> object:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        return stage.client.ask("create_topic", topic=topic, partitions=3, configs=named)

    create(stage.topic, retention_ms="86400000")
    asked = {"topic": stage.topic, "config": "retention.ms"}
    assert stage.client.ask("topic", **asked) == {"partitions": 3, "value": "86400000"}
    refused("TOPIC_ALREADY_EXISTS", lambda: create(stage.topic))
    refused("INVALID_CONFIG", lambda: create(f"{stage.topic}-2", retention_ms="soon"))
    stage.client.ask("delete_topic", topic=stage.topic)
    refused("UNKNOWN_TOPIC_OR_PARTITION", lambda: stage.client.ask("delete_topic", topic=stage.topic))


def configs(stage: Stage) -> None:
    stage.other.ask("create_topic", topic=stage.topic, partitions=1, configs={"max.message.bytes": "5000"})
    stage.client.ask("alter_topic", topic=stage.topic, configs={"max.message.bytes": "6000"})
    stage.client.ask("alter_topic", topic=stage.topic, configs={"max.message.bytes": "6000", "retention.ms": "77777"})
    for client in (stage.client, stage.other):
        for name, value in (("max.message.bytes", "6000"), ("retention.ms", "77777")):
            assert client.ask("topic", topic=stage.topic, config=name)["value"] == value
    refused(
        "INVALID_CONFIG|Unrecognized",  # kafka-python asks the broker which there are, and refuses by itself
        lambda: stage.client.ask("alter_topic", topic=stage.topic, configs={"retention.years": "3"}),
    )


def partitions(stage: Stage) -> None:
    stage.other.ask("create_topic", topic=stage.topic, partitions=2, configs={})
    stage.client.ask("add_partitions", topic=stage.topic, total=5)
    assert stage.other.ask("topic", topic=stage.topic, config="retention.ms")["partitions"] == 5
    refused("INVALID_PARTITIONS", lambda: stage.client.ask("add_partitions", topic=stage.topic, total=4))


def delete_records(stage: Stage) -> None:
    records = [Record(None, b"%d" % number) for number in range(20)]
    for record in records:  # a batch each, for layouts that cut between batches only
        stage.other.produce(stage.topic, [record])
    rows = stage.other.rows(stage.topic, 20)
    stage.client.ask("delete_records", topic=stage.topic, partition=0, before=rows[12]["offset"])
    assert stage.other.rows(stage.topic, 8, offset=rows[12]["offset"]) == rows[12:]
    earliest = stage.other.ask("offset_for_time", topic=stage.topic, partition=0, ms=0)["offset"]
    assert earliest == rows[12]["offset"]


def commits(stage: Stage) -> None:
    """A commit with metadata is read back by another client, and the other way round."""
    stage.other.produce(stage.topic, [Record(None, b"x")] * 9)
    offset = stage.other.rows(stage.topic, 9)[7]["offset"]
    place = {"topic": stage.topic, "partition": 0}
    nothing = stage.client.ask("committed", group=f"{stage.topic}-none", **place)
    assert nothing == {"offset": -1, "metadata": ""}
    for writer, reader in ((stage.client, stage.other), (stage.other, stage.client), (stage.client, stage.client)):
        group = f"{stage.topic}-{writer.name}-{reader.name}"
        writer.ask("commit", group=group, **place, offset=offset, metadata=METADATA)
        found = reader.ask("committed", group=group, **place)
        # confluent-kafka commits C's end of the text as well.
        assert (found["offset"], found["metadata"].rstrip("\0")) == (offset, METADATA)


def reset_by_time(stage: Stage) -> None:
    """A group is set back to the first record of a time, and another client finds it there."""
    now = int(time.time() * 1000)
    stage.other.produce(stage.topic, [Record(None, b"x")] * 3, times=[now - 9000, now - 6000, now - 3000])
    place = {"topic": stage.topic, "partition": 0}
    second = stage.other.rows(stage.topic, 3)[1]["offset"]
    stage.other.ask("commit", group=stage.topic, **place, offset=second + 2, metadata="")
    found = stage.client.ask("offset_for_time", **place, ms=now - 8000)["offset"]
    stage.client.ask("commit", group=stage.topic, **place, offset=found, metadata="")
    assert stage.other.ask("committed", group=stage.topic, **place)["offset"] == second


def list_and_describe(stage: Stage) -> None:
    with play(stage.world.broker, stage.topic) as scene:
        scene.send(6)
        member = scene.member("confluent")
        scene.wait_read()
        assert scene.group in stage.client.ask("list_groups")["groups"]
        assert stage.client.ask("describe_group", group=scene.group) == {"state": "Stable", "members": 1}
        member.leave()
        assert stage.client.ask("describe_group", group=scene.group) == {"state": "Empty", "members": 0}


def delete_group(stage: Stage) -> None:
    place = {"topic": stage.topic, "partition": 0}
    stage.other.produce(stage.topic, [Record(None, b"x")])
    stage.other.ask("commit", group=stage.topic, **place, offset=1, metadata="")
    stage.client.ask("delete_group", group=stage.topic)
    assert stage.topic not in stage.other.ask("list_groups")["groups"]
    assert stage.other.ask("committed", group=stage.topic, **place)["offset"] == -1
