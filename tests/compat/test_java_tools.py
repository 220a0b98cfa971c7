"""Kafka's own command-line tools, unmodified, over the embedded store and over Redis."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from compat.drivers import Session, pack, serve, unpack
from compat.java_tools import (
    CONSUMER,
    PERFORMANCE,
    PRODUCER,
    STORES,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    Tools,
    open_broker,
)
from korvet_fast.cli import root


@pytest.fixture(scope="module", params=STORES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with open_broker(request.param, tmp_path_factory.mktemp("tools")) as running:
        yield running


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Tools:
    return Tools(broker)


@pytest.fixture(scope="module")
def session(broker: BrokerProcess) -> Iterator[Session]:
    with serve("confluent", broker.bootstrap) as running:
        yield running


def fill(session: Session, topic: str, *values: bytes, compression: str = "none", start: int | None = None) -> None:
    """One topic of one partition with these values; `start`: the first one's time, the others follow in seconds."""
    session.ask("create_topic", topic=topic, partitions=1, configs={})
    records = [{"key": None, "value": pack(value), "headers": []} for value in values]
    if start is not None:
        records = [record | {"timestamp": start + 1000 * number} for number, record in enumerate(records)]
    wanted = {"partition": 0, "acks": "all", "compression": compression, "idempotent": True}
    session.ask("produce", topic=topic, records=records, **wanted)


def first(tools: Tools, topic: str) -> int:
    """The offset its only partition begins at: over Redis this is not 0."""
    (line,) = tools.offsets(topic, "earliest")
    return int(line.rsplit(":", 1)[1])


def test_topics_are_created_described_grown_listed_and_deleted(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=86400000")
    described = tools.topics("--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=86400000" in described
    assert "Leader: none" not in described
    assert "already exists" in tools.refuse("topics", "--create", "--topic", topic)
    tools.topics("--create", "--if-not-exists", "--topic", topic)
    tools.topics("--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tools.topics("--describe", "--topic", topic)
    assert "has 5" in tools.refuse("topics", "--alter", "--topic", topic, "--partitions", "2")
    assert topic in tools.topics("--list").split()
    tools.topics("--delete", "--topic", topic)
    assert topic not in tools.topics("--list").split()
    assert "does not exist" in tools.refuse("topics", "--describe", "--topic", topic)


def test_configs_are_described_set_and_deleted(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    tools.configs("--alter", *of_topic, "--add-config", "max.message.bytes=2000000,retention.ms=1000000")
    described = tools.configs("--describe", *of_topic)
    assert "max.message.bytes=2000000" in described
    assert "retention.ms=1000000" in described
    tools.configs("--alter", *of_topic, "--delete-config", "retention.ms")
    assert "retention.ms=1000000" not in tools.configs("--describe", *of_topic)
    everything = tools.configs("--describe", "--all", *of_topic)
    assert "compression.type=producer" in everything
    assert "DEFAULT_CONFIG" in everything
    of_broker = tools.configs("--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert "num.partitions=4" in of_broker
    refused = tools.refuse("configs", "--alter", *of_topic, "--add-config", "retention.ms=soon")
    assert "InvalidConfigurationException" in refused


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_offsets(tools: Tools, session: Session, topic: str, compression: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:", "--compression-codec", compression)
    tools.run(PRODUCER, "--topic", topic, *keyed, stdin="".join(f"key{n}:line {n}\n" for n in range(100)))
    base = first(tools, topic)
    assert tools.offsets(topic, "latest") == [f"{topic}:0:{base + 100}"]
    assert tools.offsets(topic, "0") == [f"{topic}:0:{base}"]
    (largest,) = tools.offsets(topic, "max-timestamp")
    assert base <= int(largest.rsplit(":", 1)[1]) < base + 100
    read = session.ask("consume", topic=topic, partition=0, offset=base, count=100)["records"]
    assert [(unpack(row["key"]), unpack(row["value"])) for row in read] == [
        (b"key%d" % n, b"line %d" % n) for n in range(100)
    ]


def test_console_consumer_by_partition(tools: Tools, session: Session, topic: str) -> None:
    fill(session, topic, *(b"line %d" % n for n in range(20)), compression="zstd")
    place = ("--topic", topic, "--partition", "0", "--offset", str(first(tools, topic) + 5))
    printed = tools.run(CONSUMER, *place, "--max-messages", "15", "--timeout-ms", "120000")
    assert printed.splitlines() == [f"line {n}" for n in range(5, 20)]


def test_console_consumers_of_a_group_go_on_where_the_last_one_ended(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    shape = ("--property", "parse.headers=true", "--property", "parse.key=true")
    lines = [f"from:here,number:{n}\tkey{n}\tline {n}\n" for n in range(30)]
    tools.run(PRODUCER, "--topic", topic, *shape, stdin="".join(lines))
    shown = [each for name in ("headers", "key", "offset") for each in ("--property", f"print.{name}=true")]
    read = ("--topic", topic, "--group", topic, "--from-beginning", "--timeout-ms", "120000", *shown)
    printed = tools.run(CONSUMER, *read, "--max-messages", "12") + tools.run(CONSUMER, *read, "--max-messages", "18")
    base = first(tools, topic)
    expected = [f"Offset:{base + n}\tfrom:here,number:{n}\tkey{n}\tline {n}" for n in range(30)]
    assert printed.splitlines() == expected
    (row,) = tools.positions(topic)
    assert (row["CURRENT-OFFSET"], row["LAG"], row["CONSUMER-ID"]) == (str(base + 30), "0", "-")


def test_verifiable_producer_and_consumer_agree(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "3")
    sent = tools.events(VERIFIABLE_PRODUCER, "--topic", topic, "--max-messages", "300", "--repeating-keys", "7")
    acked = {(row["partition"], row["offset"], row["value"]) for row in sent if row["name"] == "producer_send_success"}
    assert len(acked) == 300
    (totals,) = [row for row in sent if row["name"] == "tool_data"]
    assert (totals["sent"], totals["acked"]) == (300, 300)
    arguments = ("--group-id", topic, "--max-messages", "300", "--reset-policy", "earliest", "--verbose")
    read = tools.events(VERIFIABLE_CONSUMER, "--topic", topic, *arguments)
    data = [(row["partition"], row["offset"], row["value"]) for row in read if row["name"] == "record_data"]
    assert (len(data), set(data)) == (300, acked)
    committed = [row for row in read if row["name"] == "offsets_committed"]
    assert committed
    assert all(row["success"] for row in committed)
    assert {row["LAG"] for row in tools.positions(topic)} == {"0"}


def test_a_group_is_reset_in_all_ways_and_deleted(tools: Tools, session: Session, topic: str, tmp_path: Path) -> None:
    start = 1_700_000_000_000  # 2023-11-14T22:13:20Z, a record each second from here
    fill(session, topic, *(b"%d" % n for n in range(20)), start=start)
    base = first(tools, topic)

    def reset(*how: str) -> int:
        tools.groups("--reset-offsets", "--group", topic, "--topic", topic, "--execute", *how)
        (row,) = tools.positions(topic)
        assert int(row["LAG"]) == base + 20 - int(row["CURRENT-OFFSET"])
        return int(row["CURRENT-OFFSET"]) - base

    assert reset("--to-earliest") == 0
    assert reset("--to-latest") == 20
    assert reset("--to-offset", str(base + 4)) == 4
    assert reset("--shift-by", "3") == 7
    assert reset("--shift-by", "-5") == 2
    assert reset("--shift-by", "-50") == 0
    assert reset("--to-datetime", "2023-11-14T22:13:28.500") == 9
    assert reset("--to-datetime", "2033-01-01T00:00:00.000") == 20
    assert reset("--by-duration", "PT1H") == 20
    assert reset("--to-current") == 20
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,{base + 11}\n")
    tools.groups("--reset-offsets", "--group", topic, "--from-file", str(plan), "--execute")
    dry = tools.groups("--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--dry-run", "--export")
    assert f"{topic},0,{base}" in dry.splitlines()
    (row,) = tools.positions(topic)
    assert row["CURRENT-OFFSET"] == str(base + 11)
    assert "Successful" in tools.groups("--delete-offsets", "--group", topic, "--topic", f"{topic}:0")
    assert tools.positions(topic) == []
    reset("--to-earliest")
    assert "success" in tools.groups("--delete", "--group", topic)
    assert topic not in tools.groups("--list").split()
    assert "GroupIdNotFoundException" in tools.refuse("groups", "--delete", "--group", topic)


def test_records_are_deleted_and_lag_counts_them(tools: Tools, session: Session, topic: str, tmp_path: Path) -> None:
    fill(session, topic, *(b"%d" % n for n in range(50)))
    upto = first(tools, topic) + 30
    tools.groups("--reset-offsets", "--group", topic, "--topic", topic, "--to-offset", str(upto - 20), "--execute")
    partitions = [{"topic": topic, "partition": 0, "offset": upto}]
    file = tmp_path / "delete.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    printed = tools.run("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(file))
    assert f"low_watermark: {upto}" in printed
    assert first(tools, topic) == upto
    (row,) = tools.positions(topic)
    assert row["LAG"] == "40"
    words = ["group", "describe", topic, "--json", "--bootstrap", tools.broker.bootstrap]
    (described,) = json.loads(CliRunner().invoke(root, words).stdout)
    assert [each["lag"] for each in described["progress"]] == [40]


def test_producer_perf_test(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    base = first(tools, topic)
    printed = tools.run(
        PERFORMANCE,
        *("--topic", topic, "--num-records", "5000", "--record-size", "200", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={tools.broker.bootstrap}", "compression.type=lz4"),
    )
    assert "5000 records sent" in printed
    assert tools.offsets(topic, "latest") == [f"{topic}:0:{base + 5000}"]


def test_log_dirs_and_api_versions(tools: Tools, session: Session, topic: str) -> None:
    fill(session, topic, bytes(5000))
    printed = tools.run("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    (directory,) = described["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert sum(partition["size"] for partition in directory["partitions"]) > 5000
    versions = tools.run("org.apache.kafka.tools.BrokerApiVersionsCommand")
    assert "Produce(0): 0 to " in versions
    assert "UNKNOWN" not in versions.split("Produce(0)")[1].splitlines()[0]
