"""Record the vectors anew: PYTHONPATH=.:tests python -m vectors.record [kafka] [korvet]

Every client runs its scenarios against a real broker through a recording proxy. Needs the tests' packages and kcat; for
`kafka` also Java and Maven (benchmarks/peers/kafka), for `korvet` an installed korvet-fast.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from benchmarks.peers.kafka.broker import Kafka
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import free_ports
from compat.client import open_client
from compat.record import COMPRESSIONS, Record
from vectors.admin import administer_aiokafka, administer_confluent, administer_kafka_python
from vectors.proxy import Exchange, RecordingProxy
from vectors.vector import Vector, save

PRODUCE = 0
DESCRIBE_LOG_DIRS = 35
RECORDS = [
    Record(b"key", b"value"),
    Record(None, b"no key"),
    Record(b"headed", b"v", (("source", b"web"), ("source", b"again"))),
    Record(b"long", " ".join(f"reading {n}" for n in range(120)).encode()),  # the longest, compressed or not
]


class KafkaBehindProxy(Kafka):
    """Apache Kafka that tells its clients the proxy's address instead of its own."""

    def __init__(self, directory: Path, proxy_port: int) -> None:
        super().__init__(directory)
        self.proxy_port = proxy_port

    def prepare(self) -> None:
        super().prepare()
        file = self.directory / "server.properties"
        own = f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}"
        file.write_text(file.read_text().replace(own, own.replace(str(self.port), str(self.proxy_port))))


class KorvetBehindProxy(Korvet):
    """Korvet Fast that tells its clients the proxy's address instead of its own."""

    def __init__(self, directory: Path, proxy_port: int) -> None:
        super().__init__(directory)
        self.proxy_port = proxy_port

    def command(self) -> list[str]:
        return [*super().command(), "--advertise", f"kafka://127.0.0.1:{self.proxy_port}"]


def scenarios(driver: str, administer: Callable[[str, str], None] | None) -> dict[str, Callable[[str], None]]:
    """The client's actions, by name; each takes the bootstrap address, and begins with new connections."""
    topic = f"vectors-{uuid4().hex[:8]}"

    def produce(compression: str, acks: str = "all", idempotent: bool = False) -> Callable[[str], None]:
        def act(bootstrap: str) -> None:
            with open_client(driver, bootstrap) as client:
                client.produce(topic, RECORDS, acks=acks, compression=compression, idempotent=idempotent)

        return act

    def consume(bootstrap: str) -> None:
        with open_client(driver, bootstrap) as client:
            assert client.consume(topic, len(RECORDS)) == RECORDS

    found = {f"produce {compression}": produce(compression) for compression in COMPRESSIONS}
    found["produce acks=0"] = produce("none", acks="0")
    found["produce idempotent"] = produce("none", idempotent=True)
    found["consume"] = consume
    if administer:
        found["administer"] = lambda bootstrap: administer(bootstrap, f"{topic}-admin")
    return found


def choose(vectors: list[Vector]) -> list[Vector]:
    """One of each kind, the longest: per API and version, for Produce per scenario too."""
    chosen: dict[tuple[int, int, str], Vector] = {}
    for vector in vectors:
        kind = (vector.api_key, vector.api_version, vector.scenario if vector.api_key == PRODUCE else "")
        if kind not in chosen or _size(vector) > _size(chosen[kind]):
            chosen[kind] = vector
    return list(chosen.values())


def _size(vector: Vector) -> int:
    return len(vector.request) + len(vector.response or b"")


def read(exchange: Exchange, client: str, broker: str, scenario: str) -> Vector:
    key, api_version = (int.from_bytes(exchange.request[at : at + 2], "big") for at in (0, 2))
    # Its answer names directories of the machine it was recorded on.
    response = None if key == DESCRIBE_LOG_DIRS else exchange.response
    return Vector(client, broker, scenario, key, api_version, exchange.request, response)


def kcat_version() -> str:
    printed = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    return next(line for line in printed.splitlines() if "Version" in line).split()[1]


class Subject(NamedTuple):
    """A client that is recorded: its name and version, the name of its driver, and what else it does."""

    name: str
    version: str
    driver: str
    administer: Callable[[str, str], None] | None = None


CLIENTS = [
    Subject("kafka-python", version("kafka-python"), "kafka_python", administer_kafka_python),
    Subject("confluent-kafka", version("confluent-kafka"), "confluent", administer_confluent),
    Subject("aiokafka", version("aiokafka"), "aiokafka", administer_aiokafka),
    Subject("kcat", kcat_version(), "kcat"),
]


def record(name: str, directory: Path) -> None:
    """Run everything against the broker of that name, and write a file per client."""
    (port,) = free_ports(1)
    broker = KafkaBehindProxy(directory, port) if name == "kafka" else KorvetBehindProxy(directory, port)
    label = broker.name if name == "kafka" else f"{broker.name} {version('korvet-fast')}"
    with broker, RecordingProxy(port, broker.port) as proxy:
        for client in CLIENTS:
            heard: list[Vector] = []
            for scenario, act in scenarios(client.driver, client.administer).items():
                print(f"{label}: {client.name}: {scenario}", flush=True)
                act(f"127.0.0.1:{port}")
                heard += [read(said, f"{client.name} {client.version}", label, scenario) for said in proxy.take()]
            save(f"{client.name}-{name}", choose(heard))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["kafka", "korvet"]:
        with tempfile.TemporaryDirectory() as scratch:
            record(wanted, Path(scratch))
