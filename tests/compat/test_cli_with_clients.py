"""The command line as people use it, as processes: beside foreign clients, with much input, where things are wrong."""

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ResourceType

from broker_process import BrokerProcess
from compat.client import Client
from compat.record import Record

COMMAND = [sys.executable, "-m", "korvet_fast"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("num.partitions=2", "auto.create.topics.enable=false", "durability=written")
    with BrokerProcess(tmp_path_factory.mktemp("cli") / "data", *settings) as running:
        yield running


def call(*arguments: str, code: int = 0, **more: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run a command to its end, which must have this exit code and no traceback."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, timeout=120, **more)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def at(broker: BrokerProcess) -> tuple[str, str]:
    return ("--bootstrap", broker.bootstrap)


def configs(broker: BrokerProcess, resource: ConfigResource) -> dict[str, ConfigEntry]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(60)
    return found


def test_what_foreign_clients_wrote_is_shown_whole(broker: BrokerProcess, clients: Callable[[str], Client]) -> None:
    call("topic", "create", "foreign", "--partitions", "1", *at(broker))
    records = [
        Record(b"key", "grün".encode(), (("source", b"web"), ("source", None), ("bytes", b"\xff"))),
        Record(None, None),
        Record(b"\xfe", b""),
    ]
    clients("confluent").produce("foreign", records, compression="zstd", idempotent=True)
    arguments = ("consume", "foreign", "--from", "earliest", "--count", "3", "--json")
    first, second, third = (json.loads(line) for line in call(*arguments, *at(broker)).stdout.splitlines())
    assert (first["key"], first["value"]) == ("key", "grün")
    assert first["headers"] == [["source", "web"], ["source", None], ["bytes", {"base64": "/w=="}]]
    assert (second["offset"], second["key"], second["value"], second["headers"]) == (1, None, None, [])
    assert (third["key"], third["value"]) == ({"base64": "/g=="}, "")


def test_what_the_command_line_wrote_is_read_by_others(broker: BrokerProcess, clients: Callable[[str], Client]) -> None:
    call("topic", "create", "ours", "--partitions", "1", *at(broker))
    done = call("produce", "ours", "--compression", "lz4", *at(broker), input=b"one\n\ntwo \xff\nlast, without an end")
    assert done.stderr == b"4 records stored in topic ours\n"
    values = [record.value for record in clients("confluent").consume("ours", 4)]
    assert values == [b"one", b"", b"two \xff", b"last, without an end"]


def test_a_large_file_through_a_pipe_and_back(broker: BrokerProcess, tmp_path: Path) -> None:
    lines = [b"%07d " % number + b"x" * (number % 200) for number in range(200_000)]
    data = b"\n".join(lines) + b"\n"
    call("topic", "create", "large", "--partitions", "3", *at(broker))
    call("produce", "large", "--compression", "zstd", "--acks", "1", *at(broker), input=data)
    done = call("consume", "large", "--from", "earliest", "--count", "200000", *at(broker))
    came = sorted(done.stdout.splitlines(keepends=True))  # three partitions: in order within each
    assert hashlib.sha256(b"".join(came)).digest() == hashlib.sha256(data).digest()
    rows = [line.split("\t") for line in call("topic", "describe", "large", *at(broker)).stdout.decode().splitlines()]
    assert sum(int(row[4]) for row in rows[:3]) == 200_000


def test_settings_made_by_others_are_shown_and_the_other_way_round(broker: BrokerProcess) -> None:
    made = ("--config", "retention.ms=5000", "--config", "compression.type=gzip")
    call("topic", "create", "settings", *made, *at(broker))
    found = configs(broker, ConfigResource(ResourceType.TOPIC, "settings"))
    assert (found["retention.ms"].value, found["compression.type"].value) == ("5000", "gzip")
    call("topic", "alter", "settings", "--set", "retention.ms=6000", "--unset", "compression.type", *at(broker))
    said = call("topic", "describe", "settings", *at(broker)).stdout.decode()
    assert "retention.ms\t6000" in said
    assert "compression.type" not in said


def test_flag_over_environment_over_file_as_clients_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text('[num]\npartitions = 2\n[log.retention]\nms = 111\nbytes = 111\n["node"]\nid = 7\n')
    monkeypatch.setenv("KORVET_NUM_PARTITIONS", "3")
    monkeypatch.setenv("KORVET_LOG_RETENTION_MS", "333")
    arguments = ("--config-file", str(file))
    with BrokerProcess(tmp_path / "data", "num.partitions=4", arguments=arguments) as broker:
        monkeypatch.delenv("KORVET_NUM_PARTITIONS")
        assert call("topic", "create", "t", *at(broker)).stdout == b"created topic t with 4 partitions\n"
        found = configs(broker, ConfigResource(ResourceType.BROKER, "7"))
        names = ("num.partitions", "log.retention.ms", "log.retention.bytes", "log.segment.bytes")
        assert [found[name].value for name in names] == ["4", "333", "111", "1073741824"]
        assert [found[name].is_default for name in names] == [False, False, False, True]


@pytest.mark.parametrize(
    ("file", "environment", "flags", "words"),
    [
        ("num.partition = 4", {}, [], ".toml: there is no setting 'num.partition'; did you mean 'num.partitions'?"),
        ("", {"KORVET_NUM_PARTITION": "4"}, [], "did you mean 'KORVET_NUM_PARTITIONS'?"),
        ("", {}, ["--set", "log.retention.mss=4"], "did you mean 'log.retention.ms'?"),
        ("num.partitions = 0", {}, [], ".toml: num.partitions is 0, but must be a whole number from 1"),
        ("num.partitions = [", {}, [], "korvet.toml: "),
        ("", {"KORVET_DURABILITY": "yes"}, [], "durability is 'yes', but must be one of server, fsync, written"),
    ],
)
def test_a_setting_that_cannot_be_ends_serve_before_it_begins(
    tmp_path: Path, file: str, environment: dict[str, str], flags: list[str], words: str
) -> None:
    (tmp_path / "korvet.toml").write_text(file)
    store = ("--store", f"file:{tmp_path / 'data'}", "--listen", "kafka://127.0.0.1:0")
    arguments = ("serve", *store, "--config-file", str(tmp_path / "korvet.toml"), *flags)
    done = call(*arguments, code=2, env={**os.environ, **environment})
    assert words in done.stderr.decode()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "command", [["topic", "list"], ["topic", "create", "t"], ["produce", "t"], ["consume", "t", "--count", "1"]]
)
def test_no_broker_there(command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    said = call(*command, "--bootstrap", f"127.0.0.1:{port}", code=1, input=b"line\n").stderr.decode()
    assert f"127.0.0.1:{port}: Connection refused" in said
    assert "; start a broker with `korvet-fast serve`" in said


def test_unknown_topics_are_not_made_by_looking_or_writing(broker: BrokerProcess) -> None:
    for command in (["consume", "nothing", "--count", "1"], ["produce", "nothing"], ["topic", "describe", "nothing"]):
        said = call(*command, *at(broker), code=1, input=b"line\n").stderr.decode()
        assert "topic 'nothing': There is no such topic or partition here (UNKNOWN_TOPIC_OR_PARTITION)" in said
    assert b"nothing" not in call("topic", "list", *at(broker)).stdout


def test_doctor_beside_a_broker_and_after_it(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        arguments = ("doctor", "--store", broker.store, "--listen", f"kafka://{broker.bootstrap}")
        said = call(*arguments).stdout.decode()
        assert f"a broker is running: {tmp_path / 'data'} is in use by the process {broker.pid}" in said
        assert f"it sends clients to {broker.bootstrap}, and that answers" in said
        assert "acks=all" in said
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", b"the broker was not disturbed")
        assert producer.flush(120) == 0
    said = call(*arguments).stdout.decode()
    assert "holds a store, and no broker uses it now" in said
    assert f"kafka://{broker.bootstrap} is free" in said


def test_the_log_is_json_whatever_happens(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        for greeting in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\xff\xff\xff\xff", bytes(12)):
            with socket.create_connection(("127.0.0.1", broker.port), 10) as intruder:
                intruder.sendall(greeting)
                intruder.shutdown(socket.SHUT_WR)
                while intruder.recv(1000):
                    pass
        assert broker.stop() == 0
    lines = [json.loads(line) for line in broker.log]
    assert all(set(line) == {"time", "level", "logger", "message"} for line in lines)
    assert {line["level"] for line in lines} == {"info", "warning"}
    assert any("HTTP" in line["message"] for line in lines)
