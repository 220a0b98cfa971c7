"""Kafka's own command-line tools, from the Maven artifact kafka-tools, against our broker."""

import atexit
import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers.kafka import jars
from benchmarks.peers.process import PeerError
from broker_process import BrokerProcess
from redis_server import RedisServer, find_program
from requirement import missing

SOURCES = Path(__file__).with_name("clients") / "java_tools"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
_NAMED = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}


STORES = ("embedded", "redis")


@contextmanager
def open_broker(store: str, place: Path) -> Iterator[BrokerProcess]:
    """A broker over one of STORES, with dense offsets."""
    settings = (
        *("num.partitions=4", "group.initial.rebalance.delay.ms=100"),
        *("group.min.session.timeout.ms=1000", "group.consumer.heartbeat.interval.ms=300"),
    )
    with ExitStack() as ending:
        if store == "redis":
            server = ending.enter_context(RedisServer(find_program("redis-distribution"), place, appendonly="yes"))
            broker = BrokerProcess(place, *settings, "storage.layout=batches", store=server.url)
        else:
            broker = BrokerProcess(place / "data", *settings)
        yield ending.enter_context(broker)


def java() -> list[str]:
    """The command that runs a class of Kafka's; skips the test where Java or Maven is missing."""
    try:
        classpath = jars.classpath()
    except PeerError as error:
        missing(str(error))
        raise
    # A tool lives for a second: the quick compiler only, and a small heap, make it twice as fast.
    return [jars.java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M", "-cp", classpath]


class _Runner:
    """One Java machine in which tools run one after the other."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*java(), str(SOURCES / "ToolRunner.java")], stdin=pipe, stdout=pipe, text=True)
        atexit.register(self._end)

    def run(self, tool: str, arguments: tuple[str, ...], stdin: str) -> tuple[int, str, str]:
        """Its exit status, and what it said on stdout and stderr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"tool": tool, "arguments": arguments, "stdin": stdin}
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        except BaseException:  # interrupted: what it says next would answer the wrong question
            self._end()
            _runner.cache_clear()
            raise
        return answer["status"], answer["output"], answer["errors"]

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


_runner = cache(_Runner)


class Tools:
    """Runs Kafka's tools; what each printed, having checked that it ended well."""

    def __init__(self, broker: BrokerProcess, bootstrap: str = "") -> None:
        """`bootstrap`: the listener to ask; if empty, the broker's first one."""
        self.broker = broker
        self._bootstrap = bootstrap

    def run(self, tool: str, *arguments: str, stdin: str = "") -> str:
        status, output, errors = self._run(tool, arguments, stdin)
        assert status == 0, f"{tool} {arguments}:\n{output}{errors}"
        return output

    def refuse(self, tool: str, *arguments: str) -> str:
        """The output of a tool that does not succeed: some end with 1 then, some with 0."""
        _, output, errors = self._run(_NAMED[tool], arguments, "")
        return output + errors

    def _run(self, tool: str, arguments: tuple[str, ...], stdin: str) -> tuple[int, str, str]:
        address = () if tool == PERFORMANCE else ("--bootstrap-server", self._bootstrap or self.broker.bootstrap)
        return _runner().run(tool, (*address, *arguments), stdin)

    def topics(self, *arguments: str) -> str:
        return self.run(_NAMED["topics"], *arguments)

    def configs(self, *arguments: str) -> str:
        return self.run(_NAMED["configs"], *arguments)

    def groups(self, *arguments: str) -> str:
        return self.run(_NAMED["groups"], *arguments)

    def offsets(self, topic: str, time: str) -> list[str]:
        return self.run("org.apache.kafka.tools.GetOffsetShell", "--topic", topic, "--time", time).split()

    def positions(self, group: str) -> list[dict[str, str]]:
        """The table of a group's offsets, by partition; empty while the group rebalances."""
        lines = [line.split() for line in self.groups("--describe", "--group", group).splitlines() if line.strip()]
        titles = next((line for line in lines if line[0] == "GROUP"), [])
        rows = [dict(zip(titles, line, strict=False)) for line in lines if titles and line[0] == group]
        return sorted(rows, key=lambda row: int(row["PARTITION"]))

    def events(self, tool: str, *arguments: str) -> list[dict[str, Any]]:
        """Events of one of the verifiable tools, one a line. The tools tell the last when their Java machine ends."""
        command = [*java(), tool, "--bootstrap-server", self.broker.bootstrap, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{tool} {arguments}:\n{done.stdout}{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
