"""What TLS costs: a listener inside TLS beside a plain one and beside Apache Kafka's; idle connections, handshakes.

    python -m benchmarks.tls [--rounds 5] [--requests 3000] [--only produce]

produce      batches of 64 KB, acks=1, one connection, five requests under way, in turns. The client is this program on
             both sides, which takes more for a request than the load generator does: beside the ratio by the clock
             stands that of the broker's processor time
kafka        the same inside TLS, here and at Apache Kafka, as it comes
idle         what the broker's process holds with 2,000 connections inside TLS that have asked one thing each
handshakes   200 of them a second by another program, beside one 200 B produce at a time without TLS
"""

import argparse
import multiprocessing
import resource
import socket
import ssl
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generator import build, load
from benchmarks.legacy import spent
from benchmarks.peers.kafka.broker import Kafka
from benchmarks.peers.process import Peer, PeerError, free_ports
from benchmarks.replication import Row, Speed, compare, tell, tell_both
from benchmarks.requests.cases import batch, encode, error_codes, produce_to, topic, version
from korvet_fast.cli.authority import AUTHORITY, open_authority
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

BATCH = 64 << 10
WINDOW = 5  # requests under way
IDLE, HANDSHAKES = 2_000, 200
SMALL = ("--record-bytes", "200", "--batch-bytes", "1", "--in-flight", "1")
ROWS = ("produce", "kafka", "idle", "handshakes")

# What a node has beside benchmarks/peers/kafka: of a name that stands twice the last one counts.
PROPERTIES = """\
listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
"""


class Broker(Peer):
    """Korvet Fast of this tree, over files, with both listeners: `port` is the plain one's, `tls` the other's."""

    name = "Korvet Fast"

    def __init__(self, directory: Path, keystore: Path) -> None:
        port, self.tls = free_ports(2)
        super().__init__(directory, port)
        self._keystore = keystore

    def command(self) -> list[str]:
        listeners = ["--listen", f"kafka://{self.address}", "--listen", f"kafka+tls://127.0.0.1:{self.tls}"]
        settings = ["--set", f"ssl.keystore.location={self._keystore}", "--set", "durability=written"]
        store = f"file:{self.directory / 'data'}"
        return [sys.executable, "-m", "korvet_fast", "serve", "--store", store, *listeners, *settings]


class TlsKafka(Kafka):
    """An Apache Kafka node that has a listener inside TLS too."""

    def __init__(self, directory: Path, keystore: Path) -> None:
        super().__init__(directory)
        (self.tls,) = free_ports(1)
        self._keystore = keystore

    def prepare(self) -> None:
        super().prepare()
        controller = self.controllers[self.identity]
        more = PROPERTIES.format(port=self.port, tls=self.tls, controller=controller, keystore=self._keystore)
        with (self.directory / "server.properties").open("a") as file:
            file.write(more)


class Client:
    """One connection, inside TLS where there is a `context`. It waits for the broker whatever it does."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        client = socket.create_connection(("127.0.0.1", port), timeout=60)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = client if context is None else context.wrap_socket(client, server_hostname="localhost")

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        """The next answer, without its length."""
        (size,) = struct.unpack(">i", self._take(4))
        return self._take(size)

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise PeerError("the broker closed the connection")
            data += part
        return data

    def ask(self, message: Message, values: dict[str, Any]) -> None:
        """One request. Raises `PeerError` if there is an error in its answer."""
        self.send(encode(message, values))
        check(message, self.receive())

    def close(self) -> None:
        self._socket.close()


def check(message: Message, answer: bytes) -> None:
    """Raises `PeerError` if there is an error in an answer."""
    if any(error_codes(message.response.decode(answer, version(message), 1_000))):
        raise PeerError(f"{message.name} was answered with an error")


def produce(peer: Broker | TlsKafka, context: ssl.SSLContext | None, requests: int) -> Speed:
    """So many batches to the topic `t`, five under way."""
    frame = encode(PRODUCE, produce_to("t", [batch(BATCH)]) | {"acks": 1})
    client, answer = Client(peer.port if context is None else peer.tls, context), b""
    busy, began = spent(peer), time.perf_counter()
    for number in range(requests + WINDOW):
        if number < requests:
            client.send(frame)
        if number >= WINDOW:
            answer = client.receive()
    took, busy = time.perf_counter() - began, spent(peer) - busy
    client.close()
    check(PRODUCE, answer)
    sent = requests * len(frame)
    return Speed(sent / took / 1e6, busy / sent * 1e9)


def measure_produce(ours: Broker, context: ssl.SSLContext, rounds: int, requests: int) -> list[Row]:
    """Inside TLS, and without."""
    loads = (lambda: produce(ours, context, requests), lambda: produce(ours, None, requests))
    return tell_both("produce 64 KB, TLS / plain", compare(loads, rounds), "0.5")


def measure_kafka(ours: Broker, kafka: TlsKafka, context: ssl.SSLContext, rounds: int, requests: int) -> list[Row]:
    """Inside TLS, here and there."""
    make_topic(kafka)
    produce(kafka, context, 3 * requests)  # the JVM compiles what is hot
    loads = (lambda: produce(ours, context, requests), lambda: produce(kafka, context, requests))
    return tell_both("produce 64 KB, TLS, ours / Kafka's", compare(loads, rounds), "1")


def measure_idle(ours: Broker, context: ssl.SSLContext) -> list[Row]:
    """Memory with idle connections, and before they came."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = ours.resident_mb()
    clients = [Client(ours.tls, context) for _ in range(IDLE)]
    for client in clients:
        client.ask(API_VERSIONS, {"client_software_name": "bench", "client_software_version": "1"})
    row = Row(f"{IDLE:,} idle connections / none", [ours.resident_mb()], [before], "MB", "below 200 MB")
    for client in clients:
        client.close()
    return [row]


def measure_handshakes(ours: Broker, authority: Path, rounds: int) -> list[Row]:
    """The slowest of a hundred small produces beside handshakes, and without them."""
    above, below = [], []
    for _ in range(rounds):
        below.append(load(ours, "produce", "t", *SMALL, "--seconds", "2")["p99_us"] / 1000)
        beside = multiprocessing.get_context("spawn").Process(target=shake_hands, args=(ours.tls, authority))
        beside.start()
        above.append(load(ours, "produce", "t", *SMALL, "--seconds", "2", "--warm-up", "2")["p99_us"] / 1000)
        beside.terminate()
        beside.join()
    return [Row(f"p99 beside {HANDSHAKES} handshakes a second / without", above, below, "ms", "below 20 ms")]


def shake_hands(port: int, authority: Path) -> None:
    """Connect at this rate until the process is ended."""
    context = ssl.create_default_context(cafile=authority)
    due = time.perf_counter()
    while True:
        Client(port, context).close()
        due += 1 / HANDSHAKES
        time.sleep(max(0.0, due - time.perf_counter()))


def make_topic(peer: Peer) -> None:
    """The topic `t`, of one partition."""
    client = Client(peer.port)
    client.ask(CREATE_TOPICS, {"timeout_ms": 30_000, "topics": [topic("t", 1)]})
    client.close()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=3_000, help="of 64 KB, in one measurement")
    parser.add_argument("--only", choices=ROWS, help="these rows")
    asked = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory(prefix="korvet-tls-") as name:
        place = Path(name)
        keystore = open_authority(place).issue_server(["localhost"], 1)
        context = ssl.create_default_context(cafile=place / AUTHORITY)
        with Broker(place / "ours", keystore) as ours:
            make_topic(ours)
            produce(ours, context, 100)
            if asked.only in (None, "produce"):
                tell(measure_produce(ours, context, asked.rounds, asked.requests))
            if asked.only in (None, "kafka"):
                with TlsKafka(place / "kafka", keystore) as kafka:
                    tell(measure_kafka(ours, kafka, context, asked.rounds, asked.requests))
            if asked.only in (None, "idle"):
                tell(measure_idle(ours, context))
            if asked.only in (None, "handshakes"):
                tell(measure_handshakes(ours, place / AUTHORITY, asked.rounds))


if __name__ == "__main__":
    main()
