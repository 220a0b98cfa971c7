"""Kafka Connect, distributed: a connector from a file and one into a file, the worker killed and started again."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from compat.tools.programs import Program, Topics, running
from redis_server import free_port

pytestmark = pytest.mark.timeout(600)
_WORKER = """
bootstrap.servers={bootstrap}
listeners=http://127.0.0.1:{port}
group.id=workers
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=2
status.storage.partitions=2
offset.flush.interval.ms=300
session.timeout.ms=6000
heartbeat.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
plugin.discovery=service_load
"""


class Worker:
    """The worker's interface for people."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/connectors"

    def answers(self) -> bool:
        try:
            self._ask("")
        except (urllib.error.URLError, ConnectionError, TimeoutError):  # it starts, or rebalances
            return False
        return True

    def add(self, name: str, connector: str, **config: str) -> None:
        whole = {"connector.class": f"org.apache.kafka.connect.file.{connector}", "tasks.max": "1", **config}
        self._ask("", {"name": name, "config": whole})

    def offset(self, name: str, kind: str) -> int:
        """How far a connector has come, as it has committed it; -1: nowhere."""
        found = self._ask(f"/{name}/offsets")["offsets"]
        return int(found[0]["offset"][kind]) if found else -1

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def test_connect_distributed(topics: Topics, tmp_path: Path) -> None:
    source, sink, config, port = tmp_path / "source", tmp_path / "sink", tmp_path / "worker.properties", free_port()
    config.write_text(_WORKER.format(bootstrap=topics.bootstrap, port=port))
    lines = [f"line {number}" for number in range(30)]
    source.write_text("".join(f"{line}\n" for line in lines[:20]))
    asked = ("org.apache.kafka.connect.cli.ConnectDistributed", str(config))
    worker = Worker(port)
    with running("java_programs", tmp_path / "log", *asked) as program:
        program.until(worker.answers)
        worker.add("from-file", "FileStreamSourceConnector", file=str(source), topic="out")
        worker.add("to-file", "FileStreamSinkConnector", file=str(sink), topics="out")
        arrived(program, worker, topics, source, sink, lines[:20])
        program.kill()
        with source.open("a") as more:
            more.writelines(f"{line}\n" for line in lines[20:])
        program.start()
        program.until(worker.answers)
        arrived(program, worker, topics, source, sink, lines)
    assert {topics.setting(f"connect-{kind}", "cleanup.policy") for kind in ("configs", "offsets", "status")} == {
        "compact"
    }


def arrived(program: Program, worker: Worker, topics: Topics, source: Path, sink: Path, lines: list[str]) -> None:
    """Each line is in the topic and in the other file, once, and both connectors have committed that."""
    program.until(lambda: topics.values("out") == [line.encode() for line in lines])
    program.until(lambda: sink.exists() and sink.read_text().splitlines() == lines)
    program.until(lambda: worker.offset("from-file", "position") == source.stat().st_size)
    program.until(lambda: topics.all_committed("connect-to-file", "out"))
