"""Kafka's own command-line tools, from the Maven artifact kafka-tools, against our broker."""

import json
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.peers.kafka import jars
from benchmarks.peers.process import PeerError
from broker_process import BrokerProcess
from compat import client_confluent
from compat.record import Record
from requirement import missing

pytestmark = pytest.mark.timeout(240)  # the first run fetches the artifacts


@pytest.fixture(scope="module")
def classpath() -> str:
    try:
        return jars.classpath()
    except PeerError as error:
        missing(str(error))
        raise


class Tools:
    """Runs one Kafka tool; what it printed, having checked that it ended well."""

    def __init__(self, classpath: str, broker: BrokerProcess) -> None:
        self.broker = broker
        # A tool lives for a second: the quick compiler only, and a small heap, make it twice as fast.
        self.java = [jars.java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M", "-cp", classpath]

    def run(self, tool: str, *arguments: str, stdin: str = "") -> str:
        bootstrap = ["--bootstrap-server", self.broker.bootstrap]
        if tool == "org.apache.kafka.tools.ProducerPerformance":
            bootstrap = []
        done = subprocess.run(
            [*self.java, tool, *bootstrap, *arguments], input=stdin, capture_output=True, text=True, timeout=90
        )
        assert done.returncode == 0, f"{tool} {arguments}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def topics(self, *arguments: str) -> str:
        return self.run("org.apache.kafka.tools.TopicCommand", *arguments)

    def configs(self, *arguments: str) -> str:
        return self.run("kafka.admin.ConfigCommand", *arguments)

    def offsets(self, topic: str, time: str) -> list[str]:
        return self.run("org.apache.kafka.tools.GetOffsetShell", "--topic", topic, "--time", time).split()


@pytest.fixture
def tools(classpath: str, broker: BrokerProcess) -> Tools:
    return Tools(classpath, broker)


@pytest.fixture
def topic() -> str:
    return f"java-{uuid4().hex[:12]}"


def test_topics_are_created_described_grown_listed_and_deleted(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=86400000")
    described = tools.topics("--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=86400000" in described
    assert "Leader: none" not in described
    tools.topics("--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tools.topics("--describe", "--topic", topic)
    assert topic in tools.topics("--list").split()
    tools.topics("--delete", "--topic", topic)
    assert topic not in tools.topics("--list").split()


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


def test_console_producer_and_offsets(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    lines = "".join(f"key{n}:line {n}\n" for n in range(100))
    tools.run("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, *keyed, stdin=lines)
    read = client_confluent.consume(tools.broker.bootstrap, topic, 100)
    assert read == [Record(b"key%d" % n, b"line %d" % n) for n in range(100)]
    assert tools.offsets(topic, "latest") == [f"{topic}:0:100"]
    assert tools.offsets(topic, "earliest") == [f"{topic}:0:0"]
    assert tools.offsets(topic, "0") == [f"{topic}:0:0"]
    (largest,) = tools.offsets(topic, "max-timestamp")
    assert 0 <= int(largest.rsplit(":", 1)[1]) < 100


def test_console_consumer_by_partition(tools: Tools, topic: str) -> None:
    client_confluent.produce(
        tools.broker.bootstrap,
        topic,
        [Record(b"k", b"line %d" % n) for n in range(20)],
        acks="all",
        compression="zstd",
        idempotent=True,
    )
    arguments = ("--topic", topic, "--partition", "0", "--offset", "5", "--max-messages", "15", "--timeout-ms", "20000")
    printed = tools.run("org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments)
    assert printed.splitlines() == [f"line {n}" for n in range(5, 20)]


def test_records_are_deleted(tools: Tools, topic: str, tmp_path: Path) -> None:
    client_confluent.produce(
        tools.broker.bootstrap,
        topic,
        [Record(None, b"%d" % n) for n in range(50)],
        acks="all",
        compression="none",
        idempotent=False,
    )
    request = {"partitions": [{"topic": topic, "partition": 0, "offset": 30}], "version": 1}
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps(request))
    printed = tools.run("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(file))
    assert "low_watermark: 30" in printed
    assert f"{topic}:0:30" in tools.offsets(topic, "earliest")


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_producer_perf_test(tools: Tools, topic: str, compression: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    printed = tools.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "5000", "--record-size", "200", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={tools.broker.bootstrap}", f"compression.type={compression}"),
    )
    assert "5000 records sent" in printed
    assert tools.offsets(topic, "latest") == [f"{topic}:0:5000"]


def test_log_dirs_and_api_versions(tools: Tools, topic: str) -> None:
    client_confluent.produce(
        tools.broker.bootstrap, topic, [Record(None, bytes(5000))], acks="all", compression="none", idempotent=False
    )
    printed = tools.run("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    (directory,) = described["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert sum(partition["size"] for partition in directory["partitions"]) > 5000
    versions = tools.run("org.apache.kafka.tools.BrokerApiVersionsCommand")
    assert "Produce(0): 0 to " in versions
    assert "UNKNOWN" not in versions.split("Produce(0)")[1].splitlines()[0]
