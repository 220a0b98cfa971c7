"""The group commands against a real broker, with a real consumer in a group."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_process import BrokerProcess
from korvet_fast.cli import root
from redis_server import RedisServer


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("durability=written", "group.initial.rebalance.delay.ms=0")
    with BrokerProcess(tmp_path_factory.mktemp("cli") / "data", *settings) as process:
        yield process


def call(broker: BrokerProcess, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(root, [*arguments, "--bootstrap", broker.bootstrap])
    assert result.exit_code == code, result.output
    return result.output


def told(broker: BrokerProcess, *arguments: str) -> Any:
    return json.loads(call(broker, *arguments, "--json"))


def fill(broker: BrokerProcess, *options: str, records: int = 20) -> str:
    """A topic of two partitions with so many records in them."""
    topic = f"t{uuid4().hex[:8]}"
    call(broker, "topic", "create", topic, "--partitions", "2", *options)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(120) == 0
    return topic


@contextmanager
def member(broker: BrokerProcess, topic: str, group: str, protocol: str = "classic") -> Iterator[None]:
    """A consumer that has its partitions, and stays in the group."""
    who = {"group.id": group, "client.id": "reader", "group.protocol": protocol}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap} | who)
    assigned, over = threading.Event(), threading.Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())

    def stay() -> None:
        while not over.is_set():
            consumer.poll(0.05)
        consumer.close()

    thread = threading.Thread(target=stay)
    thread.start()
    try:
        assert assigned.wait(120)
        yield
    finally:
        over.set()
        thread.join()


def commit(broker: BrokerProcess, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, n, offset) for n, offset in enumerate(offsets)], asynchronous=False)
    consumer.close()


def bounds(broker: BrokerProcess, topic: str) -> list[int]:
    """Where the partitions end."""
    return [int(line.split("\t")[3]) for line in call(broker, "topic", "describe", topic).splitlines()[:2]]


def test_groups_are_listed_by_state(broker: BrokerProcess) -> None:
    topic = fill(broker)
    commit(broker, f"idle-{topic}", topic, 1)
    with member(broker, topic, f"busy-{topic}"):
        lines = call(broker, "group", "list").splitlines()
        assert f"busy-{topic}\tclassic\tStable\tconsumer" in lines
        assert f"idle-{topic}\tclassic\tEmpty\t" in lines
        (row,) = [each for each in told(broker, "group", "list", "--state", "stable") if topic in each["group"]]
        assert row == {"group": f"busy-{topic}", "state": "Stable", "protocol_type": "consumer", "kind": "classic"}


def test_a_group_is_described_with_its_lag_and_its_members(broker: BrokerProcess) -> None:
    topic = fill(broker)
    ends = bounds(broker, topic)
    commit(broker, topic, topic, 3)
    first, *rows = call(broker, "group", "describe", topic).splitlines()
    assert first == f"group {topic}: classic, Empty, 0 members"
    assert [row.split("\t") for row in rows] == [[topic, "0", "3", str(ends[0]), str(ends[0] - 3), "-", "-"]]
    with member(broker, topic, topic):
        (group,) = told(broker, "group", "describe", topic)
        assert (group["group"], group["state"], group["protocol"], group["members"]) == (topic, "Stable", "range", 1)
        one, two = group["progress"]
        assert (one["committed"], one["end"], one["lag"]) == (3, ends[0], ends[0] - 3)
        assert (two["committed"], two["end"], two["lag"]) == (None, ends[1], None)
        assert {(each["client"], each["host"]) for each in (one, two)} == {("reader", "/127.0.0.1")}
        assert one["member"].startswith("reader-")


def test_a_group_of_the_consumer_protocol_is_shown_as_one(broker: BrokerProcess) -> None:
    topic = fill(broker)
    ends = bounds(broker, topic)
    with member(broker, topic, topic, "consumer"):
        (row,) = [each for each in told(broker, "group", "list", "--type", "Consumer") if each["group"] == topic]
        assert row == {"group": topic, "state": "Stable", "protocol_type": "consumer", "kind": "consumer"}
        classic = told(broker, "group", "list", "--type", "classic")
        assert topic not in {each["group"] for each in classic}
        first, *rows = call(broker, "group", "describe", topic).splitlines()
        assert first == f"group {topic}: consumer, Stable, 1 member, protocol uniform"
        assert [row.split("\t")[:5] for row in rows] == [[topic, str(n), "-", str(ends[n]), "-"] for n in range(2)]
        (group,) = told(broker, "group", "describe", topic)
        assert {(each["client"], each["host"]) for each in group["progress"]} == {("reader", "/127.0.0.1")}
    assert "GROUP_ID_NOT_FOUND" in call(broker, "group", "describe", f"no-{topic}", code=1)


def test_lag_counts_only_what_is_still_there(broker: BrokerProcess) -> None:
    topic = fill(broker)
    gone = f"gone-{topic}"
    call(broker, "topic", "create", gone)
    commit(broker, topic, topic, 0)
    commit(broker, topic, gone, 0)
    call(broker, "topic", "delete", gone)
    (group,) = told(broker, "group", "describe", topic)
    assert [each["topic"] for each in group["progress"]] == [topic]


def test_a_group_is_reset_to_wherever_one_likes(broker: BrokerProcess) -> None:
    topic = fill(broker)
    ends = bounds(broker, topic)
    commit(broker, topic, topic, 3)

    def reset(*arguments: str) -> list[int]:
        return [row["after"] for row in told(broker, "group", "reset", topic, *arguments)]

    dry = call(broker, "group", "reset", topic, "--all-topics", "--to", "latest", "--dry-run").splitlines()
    assert dry == [f"{topic}\t0\t3\t{ends[0]}", "nothing was changed: this was a dry run"]
    assert reset("--topic", topic, "--to", "latest") == ends
    assert reset("--topic", f"{topic}:1", "--to", "earliest") == [0]
    assert reset("--all-topics", "--to", "2") == [2, 2]
    assert reset("--all-topics", "--to", "2020-01-01") == [0, 0]
    assert reset("--all-topics", "--to", "2999-01-01T00:00:00+00:00") == ends
    (group,) = told(broker, "group", "describe", topic)
    assert [each["lag"] for each in group["progress"]] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--to", "earliest"), 2, "--all-topics"),
        (("--all-topics", "--to", "soon"), 2, "none of: earliest"),
        (("--topic", "t:x", "--to", "1"), 2, "TOPIC:0,1,2"),
        (("--all-topics", "--to", "99"), 1, "holds offsets 0 to"),
        (("--topic", "nowhere", "--to", "1"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("--topic", "T:5", "--to", "1"), 1, "has no partition 5"),
    ],
)
def test_a_reset_that_cannot_be_says_why(
    broker: BrokerProcess, arguments: tuple[str, ...], code: int, text: str
) -> None:
    topic = fill(broker)
    commit(broker, topic, topic, 1)
    asked = [argument.replace("T:", f"{topic}:") for argument in arguments]
    assert text in call(broker, "group", "reset", topic, *asked, code=code)


def test_a_group_with_members_is_neither_reset_nor_deleted(broker: BrokerProcess) -> None:
    topic = fill(broker)
    with member(broker, topic, topic):
        for which in (["--topic", topic], ["--all-topics"]):  # of which none is committed
            printed = call(broker, "group", "reset", topic, *which, "--to", "1", code=1)
            assert f"group {topic!r} has 1 member: stop it first" in printed
        assert "NON_EMPTY_GROUP" in call(broker, "group", "delete", topic, code=1)
    commit(broker, topic, topic, 1)
    printed = call(broker, "group", "delete", topic, "nobody", code=1)
    assert f"deleted group {topic}" in printed
    assert "'nobody' was not deleted: There is no such group (GROUP_ID_NOT_FOUND)." in printed
    assert "GROUP_ID_NOT_FOUND" in call(broker, "group", "describe", topic, code=1)
    assert "committed nothing" in call(broker, "group", "reset", topic, "--all-topics", "--to", "1", code=1)


def test_where_offsets_are_times_lag_is_counted(start_redis: Callable[..., RedisServer], tmp_path: Path) -> None:
    server = start_redis(appendonly="yes")
    with BrokerProcess(tmp_path, "durability=written", store=server.url) as broker:
        topic = fill(broker, "--layout", "entries", records=500)
        ends = bounds(broker, topic)
        assert all(end > 1 << 40 for end in ends)
        call(broker, "group", "reset", topic, "--topic", topic, "--to", "earliest")
        (group,) = told(broker, "group", "describe", topic)
        assert sum(each["lag"] for each in group["progress"]) == 500
        commit(broker, topic, topic, ends[0] - 1, ends[1])
        (group,) = told(broker, "group", "describe", topic)
        assert [each["lag"] for each in group["progress"]] == [1, 0]
