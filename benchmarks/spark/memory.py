"""How much memory a Python worker of ours needs when records are large."""

import sys
from pathlib import Path

import psutil
from confluent_kafka import Producer

from benchmarks.peers.process import Peer
from benchmarks.peers.spark.session import Session, open_session
from benchmarks.spark.contestants import HEAP, PATIENCE, create
from benchmarks.spark.rows import PARTITIONS

TOPIC = "large"
SIZE = 1_000_000  # bytes of one value
RECORDS = 400


def measure(broker: Peer) -> dict[str, float]:
    """MB (10^6 bytes) of the largest Python worker: when it has read a few small rows, and after 1 MB records."""
    create(broker, TOPIC)
    create(broker, "small")
    producer = Producer({"bootstrap.servers": broker.address, "message.max.bytes": 2 * SIZE})
    for number in range(RECORDS):
        producer.produce("small", b"small", partition=number % PARTITIONS)
        producer.produce(TOPIC, number.to_bytes(4, "big") * (SIZE // 4), partition=number % PARTITIONS)
        producer.flush()
    with open_session(Path(sys.executable), korvet=True, conf=HEAP) as session:
        return {name: _read(session, broker, topic) for name, topic in (("small", "small"), ("large", TOPIC))}


def _read(session: Session, broker: Peer, topic: str) -> float:
    options = {"kafka.bootstrap.servers": broker.address, "subscribe": topic}
    source = {"format": "korvet", "options": options}
    session.ask("copy", within=PATIENCE, source=source, sink={"format": "noop", "mode": "overwrite"})
    # The first is the driver itself; workers stay for a while when their task is done.
    return max(_peak(each) for each in session.family()[1:] if "python" in each.name())


def _peak(process: psutil.Process) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024 / 1e6
