"""Kafka's own measuring tools against a broker: what each printed, as figures."""

import re
import subprocess

from benchmarks.peers.kafka import jars
from benchmarks.peers.process import Peer, PeerError

TOOLS = "org.apache.kafka.tools"
WITHIN = 120  # seconds for one tool
Figures = dict[str, float]


def produce(peer: Peer, topic: str, records: int, size: int) -> Figures:
    """ProducerPerformance: as fast as it can, acks=1, batches of 64 KB; sends the topic's first records."""
    sent = ("--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1")
    properties = (f"bootstrap.servers={peer.address}", "acks=1", "batch.size=65536")
    printed = _run(peer, "ProducerPerformance", *sent, "--producer-props", *properties)
    return {"java_produced_per_s": _find(r"([\d.]+) records/sec(?!.*records/sec)", printed)}


def consume(peer: Peer, topic: str, records: int) -> Figures:
    """ConsumerPerformance: its fetch phase, without the time its group needs to form."""
    asked = ("--bootstrap-server", peer.address, "--topic", topic, "--messages", str(records), "--timeout", "60000")
    header, _, values = _run(peer, "ConsumerPerformance", *asked).strip().rpartition("\n")
    found = dict(zip(header.splitlines()[-1].split(", "), values.split(", "), strict=True))
    if int(found["data.consumed.in.nMsg"]) < records:
        raise PeerError(f"{peer.name}: ConsumerPerformance read {found['data.consumed.in.nMsg']} of {records} records")
    return {"java_consumed_per_s": float(found["fetch.nMsg.sec"])}


def end_to_end(peer: Peer, topic: str, records: int, size: int) -> Figures:
    """EndToEndLatency: one record at a time, from send until the consumer has it; p50 and p99 in ms."""
    printed = _run(peer, "EndToEndLatency", peer.address, topic, str(records), "1", str(size))
    pattern = r"50th = ([\d.]+), 99th = ([\d.]+)"
    return {"java_p50_ms": _find(pattern, printed, 1), "java_p99_ms": _find(pattern, printed, 2)}


def _run(peer: Peer, tool: str, *arguments: str) -> str:
    command = [jars.java(), "-Xmx512M", "-cp", jars.classpath(), f"{TOOLS}.{tool}", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN)
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{peer.name}: {tool} did not end within {WITHIN} s") from error
    if done.returncode != 0:
        raise PeerError(f"{peer.name}: {tool} {' '.join(arguments)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _find(pattern: str, printed: str, group: int = 1) -> float:
    found = re.search(pattern, printed, re.DOTALL)
    if found is None:
        raise PeerError(f"this is not what was expected of Kafka's tool:\n{printed[-2000:]}")
    return float(found[group])
