"""An Apache Kafka node (KRaft, broker and controller in one) from Maven's artifacts, with Kafka's own defaults."""

import base64
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.kafka import jars
from benchmarks.peers.process import Peer, PeerError, free_ports

# Kafka's own start script sets these.
JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

# Only what a node needs; everything that matters for speed stays at Kafka's default. Deleted topics leave the disk at
# once, not after a minute: their unwritten pages would still be on their way to it while the other broker is measured.
PROPERTIES = """\
process.roles=broker,controller
node.id={identity}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=0
"""

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c)%n%throwable
"""


class Kafka(Peer):
    """`with Kafka(directory) as kafka:` starts it on free ports with everything it writes below `directory`.

    `ports`: of its listeners for clients and for controllers, where they are to be others.
    """

    name = f"Apache Kafka {jars.version()}"
    identity = 1
    heap = "1G"  # the start script's

    def __init__(self, directory: Path, ports: tuple[int, int] | None = None) -> None:
        port, controller = ports or free_ports(2)
        super().__init__(directory, port)
        self.controllers: Mapping[int, int] = {self.identity: controller}  # ports, by id
        self.cluster = make_cluster_id()

    def prepare(self) -> None:
        """Write the properties and format the data directory. Raises PeerError when that fails."""
        super().prepare()
        data = self.directory / "data"
        properties = PROPERTIES.format(
            identity=self.identity,
            port=self.port,
            controller=self.controllers[self.identity],
            voters=",".join(f"{node}@127.0.0.1:{port}" for node, port in self.controllers.items()),
            data=data,
        )
        (self.directory / "server.properties").write_text(properties)
        (self.directory / "log4j2.properties").write_text(LOGGING)
        if (data / "meta.properties").exists():
            return
        command = self._java("kafka.tools.StorageTool", "format", "-t", self.cluster, "-c", "server.properties")
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True)
        if done.returncode != 0:
            raise PeerError(f"Kafka's data directory could not be formatted:\n{done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        return self._java(f"-Xms{self.heap}", f"-Xmx{self.heap}", *JVM, "kafka.Kafka", "server.properties")

    def _java(self, *arguments: str) -> list[str]:
        logging = "-Dlog4j2.configurationFile=log4j2.properties"
        return [jars.java(), "-cp", jars.classpath(), logging, *arguments]


def make_cluster_id() -> str:
    """A new id, as Kafka writes them: URL-safe base64. A leading hyphen would look like an option."""
    return "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
